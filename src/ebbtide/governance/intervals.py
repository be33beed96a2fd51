"""Where a query treats a duration as an interval, as in `as_interval(t.schedule) > INTERVAL 90 DAY`.

A function of Spark's has one type. `as_interval` and `duration_of_time_grain` give days, which reads best beside
numbers and dates; next to an interval they mean the same length as one, and `interval_of` and `interval_of_time_grain`
give it. Their names are as long as the others, so that a place in the text stays where it is.
"""

from __future__ import annotations

from sqlglot import exp

AS_INTERVAL = {"as_interval": "interval_of", "duration_of_time_grain": "interval_of_time_grain"}
_MAKERS = frozenset({*AS_INTERVAL.values(), "make_dt_interval"})
_ONE_OF = (exp.Coalesce, exp.Greatest, exp.Least)
_SAME_TYPE = (exp.Predicate, exp.Add, exp.Sub, *_ONE_OF)
_PASSED_ON = (exp.Paren, exp.Neg, exp.Mul, exp.Div, *_ONE_OF)


def interval_calls(statement: exp.Expr) -> tuple[tuple[int, str], ...]:
    """Where calls stand that give days and are wanted as intervals, each with the function that gives one."""
    found = []
    for call in statement.find_all(exp.Anonymous):
        name = AS_INTERVAL.get(call.name.lower())
        if name is not None and "start" in call.meta and _beside_interval(call):
            found.append((int(call.meta["start"]), name))
    return tuple(sorted(found))


def _beside_interval(call: exp.Expr) -> bool:
    """Whether what the call is part of is compared with an interval, or added to one."""
    node, around = call, call.parent
    while around is not None:
        others = [one for one in around.iter_expressions() if one is not node]
        if isinstance(around, _SAME_TYPE) and any(_is_interval(one) for one in others):
            return True
        sum_of_ours = isinstance(around, exp.Add | exp.Sub) and all(_is_ours(one) for one in others)
        if not (sum_of_ours or isinstance(around, _PASSED_ON)):
            return False
        node, around = around, around.parent
    return False


def _is_ours(node: exp.Expr) -> bool:
    return isinstance(node.unnest(), exp.Anonymous) and node.unnest().name.lower() in AS_INTERVAL


def _is_interval(node: exp.Expr) -> bool:
    plain = node.unnest()
    if isinstance(plain, exp.Neg):
        return _is_interval(plain.this)
    if isinstance(plain, exp.Add | exp.Sub):
        return _is_interval(plain.left) and _is_interval(plain.right)
    if isinstance(plain, exp.Mul):
        return _is_interval(plain.left) or _is_interval(plain.right)
    if isinstance(plain, exp.Cast):
        return plain.to.is_type(exp.DType.INTERVAL) or isinstance(plain.to.this, exp.Interval)
    return isinstance(plain, exp.Interval) or (isinstance(plain, exp.Anonymous) and plain.name.lower() in _MAKERS)
