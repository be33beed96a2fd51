"""Random policies. A table's name begins with the kind of its policy, so one set of policies covers a whole lake."""

from __future__ import annotations

from random import Random

ICEBERG = (
    "views", "keepviews", "latest", "staging", "least", "most", "some", "both", "days", "dated", "branches", "young",
    "statute", "gone",
)  # fmt: skip
"""The kinds that the random tables of a format fall under."""
DELTA = ("views", "keepviews", "least", "most", "some", "both", "days", "dated", "young", "statute", "gone")
OTHERS = ("least", "most", "both")


def random_policies(random: Random) -> str:
    """One policy per kind with random settings, a floor, and perhaps a last policy that takes what the others leave."""

    def age() -> str:
        return f"{random.randint(1, 30)}d"

    def several() -> int:
        return random.randint(2, 4)

    targets = {
        "views": [f"transactions: {{older_than: {age()}}}"],
        "keepviews": [f"transactions: {{older_than: {age()}, keep_views: {random.randint(2, 3)}}}"],
        "latest": [
            f"transactions: {{older_than: {age()}, allow_latest_view: true}}",
            f"versions: {{older_than: {age()}}}",
        ],
        "staging": [f"transactions: {{older_than: {age()}, staged: true}}"],
        "least": [f"versions: {{older_than: {age()}, keep_min: {several()}}}"],
        "most": [f"versions: {{keep_max: {several()}}}"],
        "some": [f"versions: {{older_than: {age()}, keep_min: 1, limit: {several()}}}"],
        "both": [f"transactions: {{older_than: {age()}}}", f"versions: {{older_than: {age()}, keep_min: 1}}"],
        "days": [f"partitions: {{older_than: {age()}}}", f"versions: {{older_than: {random.randint(1, 20)}d}}"],
        "dated": [f"partitions: {{older_than: {age()}}}", f"versions: {{older_than: {random.randint(1, 20)}d}}"],
        "branches": [f"branches: {{unused_for: {age()}}}", f"transactions: {{older_than: {age()}}}"],
        "young": ["transactions: {older_than: 9y}", "versions: {older_than: 9y}"],
        "expired": ["rows: {where: \"day < '2026-06-01'\"}", f"versions: {{older_than: {age()}, keep_min: 1}}"],
        "gone": [f"tables: {{older_than: {age()}}}"],
        "later": ["versions: {older_than: 60d, keep_min: 1}"],
        "statute": [f"transactions: {{older_than: {age()}}}", f"versions: {{older_than: {age()}, keep_min: 1}}"],
    }
    lines = ["policies:"]
    for kind, texts in targets.items():
        only_main = ", branches: [main]" if kind == "latest" else ""
        lines += [
            f"  - name: {kind}",
            f'    select: {{tables: ["*.db.{kind}_*"]{only_main}}}',
            f"    grace: {random.choice(['12h', '2d', '7d'])}",
            *(f"    {text}" for text in texts),
        ]
    if random.random() < 0.7:
        lines += [
            "  - name: rest",
            "    select:",
            "      formats: [iceberg]",
            '      exclude: {tables: ["*.db.young_*", "*.db.least_*", "*.db.most_*", "*.db.later_*"]}',
            f"    versions: {{older_than: {age()}, keep_min: {random.randint(1, 2)}}}",
        ]
    lines += ['  - {name: leftovers, select: {tables: ["**"]}, orphans: {older_than: 3d}}']
    lines += ["floors:", '  - {tables: ["*.db.statute_*"], keep_at_least: 10y, basis: tax, name: statute}']
    return "\n".join(lines) + "\n"
