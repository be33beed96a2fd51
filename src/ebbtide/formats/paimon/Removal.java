import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.UUID;

import org.apache.hadoop.conf.Configuration;
import org.apache.paimon.Snapshot;
import org.apache.paimon.catalog.CatalogContext;
import org.apache.paimon.consumer.ConsumerManager;
import org.apache.paimon.data.BinaryRow;
import org.apache.paimon.fs.FileIO;
import org.apache.paimon.fs.FileStatus;
import org.apache.paimon.fs.Path;
import org.apache.paimon.fs.PositionOutputStream;
import org.apache.paimon.fs.SeekableInputStream;
import org.apache.paimon.manifest.FileKind;
import org.apache.paimon.manifest.IndexManifestEntry;
import org.apache.paimon.manifest.ManifestEntry;
import org.apache.paimon.operation.FileStoreCommitImpl;
import org.apache.paimon.options.ExpireConfig;
import org.apache.paimon.options.Options;
import org.apache.paimon.schema.SchemaManager;
import org.apache.paimon.schema.TableSchema;
import org.apache.paimon.table.ExpireChangelogImpl;
import org.apache.paimon.table.ExpireSnapshotsImpl;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.table.FileStoreTableFactory;
import org.apache.paimon.utils.FileStorePathFactory;
import org.apache.paimon.utils.JsonSerdeUtil;
import org.apache.paimon.utils.SnapshotManager;

/**
 * Changes one Paimon table through Paimon's own classes, and never more of it than was asked (`java.py`, `Metadata`).
 *
 * <p>Paths are given and answered relative to the table's folder, one a line.
 */
public class Removal {

    /**
     * Takes data files out of the head of a branch in one overwrite commit: whole partitions, exactly as they were
     * planned. A line of `wanted` is a drop's number, a tab and a path.
     *
     * <p>Paimon's own drop takes whatever a partition holds by then. This one compares what is live in snapshot `base`
     * with what was planned, and commits on top of that very snapshot or not at all. The answer has for each drop how
     * many of its files are live, are not, and are live beside them; drops without either of the last two are
     * committed. `conflict` says that a writer came between.
     */
    public String drop(String location, Map options, Configuration hadoop, String branch, long base, String wanted) {
        Path root = new Path(location);
        FileStoreTable table = table(open(root, options, hadoop), root, branch);
        Snapshot head = table.snapshotManager().snapshot(base);
        Map planned = new HashMap();
        Map counts = new TreeMap();
        for (Object line : lines(wanted)) {
            String[] parts = ((String) line).split("\t", 2);
            Integer number = Integer.valueOf(parts[0]);
            planned.put(parts[1], number);
            if (counts.get(number) == null) {
                counts.put(number, new int[3]);
            }
            ((int[]) counts.get(number))[1]++;
        }
        List live = table.store().newScan().withSnapshot(head).plan().files();
        FileStorePathFactory paths = table.store().pathFactory();
        Map partitions = new HashMap();
        for (Object item : live) {
            ManifestEntry entry = (ManifestEntry) item;
            Integer number = (Integer) planned.get(relative(root, path(paths, entry)));
            if (number != null) {
                int[] count = (int[]) counts.get(number);
                count[0]++;
                count[1]--;
                partitions.put(entry.partition(), number);
            }
        }
        for (Object item : live) {
            ManifestEntry entry = (ManifestEntry) item;
            Integer here = (Integer) partitions.get(entry.partition());
            Integer number = (Integer) planned.get(relative(root, path(paths, entry)));
            if (here != null && !here.equals(number)) {
                ((int[]) counts.get(here))[2]++;
            }
        }
        List files = new ArrayList();
        Set dropped = new HashSet();
        for (Object item : live) {
            ManifestEntry entry = (ManifestEntry) item;
            Integer number = (Integer) planned.get(relative(root, path(paths, entry)));
            int[] count = number == null ? null : (int[]) counts.get(number);
            if (count != null && count[1] == 0 && count[2] == 0) {
                files.add(new ManifestEntry(
                        FileKind.DELETE, entry.partition(), entry.bucket(), entry.totalBuckets(), entry.file()));
                dropped.add(entry.partition());
            }
        }
        Map answer = new LinkedHashMap();
        answer.put("counts", counts);
        answer.put("conflict", !files.isEmpty() && !commit(table, head, files, indexes(table, head, dropped)));
        return JsonSerdeUtil.toFlatJson(answer);
    }

    /** Deletion vectors and hash indexes of the dropped partitions go in the same commit. */
    private static List indexes(FileStoreTable table, Snapshot head, Set partitions) {
        List found = new ArrayList();
        if (head.indexManifest() != null) {
            for (Object item : table.store().indexManifestFileFactory().create().read(head.indexManifest())) {
                IndexManifestEntry entry = (IndexManifestEntry) item;
                if (partitions.contains(entry.partition())) {
                    found.add(entry.toDeleteEntry());
                }
            }
        }
        return found;
    }

    /**
     * One attempt to commit on top of `head`; false where another commit is there already.
     *
     * <p>The public ways to commit look for the newest snapshot again and try for ever. The attempt itself is not
     * public, so it is found by its name; its signature is that of Paimon 0.9.
     */
    private static boolean commit(FileStoreTable table, Snapshot head, List files, List indexes) {
        FileStoreCommitImpl commit =
                (FileStoreCommitImpl) table.store().newCommit("ebbtide-" + UUID.randomUUID().toString());
        try {
            Method check = declared(FileStoreCommitImpl.class, "mustConflictCheck");
            Method once = declared(FileStoreCommitImpl.class, "tryCommitOnce");
            String branch = table.coreOptions().branch();
            return ((Boolean) once.invoke(
                            commit,
                            new Object[] {
                                files,
                                new ArrayList(),
                                indexes,
                                Long.valueOf(Long.MAX_VALUE),
                                null,
                                new HashMap(),
                                Snapshot.CommitKind.OVERWRITE,
                                head,
                                check.invoke(null, new Object[0]),
                                branch,
                                null
                            }))
                    .booleanValue();
        } catch (InvocationTargetException error) {
            throw broken("the commit failed", error);
        } catch (IllegalAccessException error) {
            throw broken("the commit failed", error);
        } finally {
            commit.close();
        }
    }

    private static Method declared(Class type, String name) {
        for (Method method : type.getDeclaredMethods()) {
            if (method.getName().equals(name)) {
                method.setAccessible(true);
                return method;
            }
        }
        throw new Failed("this Paimon has no " + name + ", 0.9 has");
    }

    /**
     * Expires the snapshots from `begin` up to, and without, `end` by Paimon's own expiry, which may remove the files
     * of `named` and no other. As a rehearsal it removes and writes nothing.
     *
     * <p>The answer has the number of expired snapshots, what was removed, what was asked for and not named, what
     * could not be removed, and, where nothing was tried, why it was `stopped`.
     */
    public String expire(
            String location,
            Map options,
            Configuration hadoop,
            String branch,
            long begin,
            long end,
            String named,
            boolean rehearsal) {
        Path root = new Path(location);
        Guard guard = new Guard(open(root, options, hadoop), root, new HashSet(lines(named)), rehearsal);
        FileStoreTable table = table(guard, root, branch);
        String stopped = stopped(table.snapshotManager(), new ConsumerManager(guard, root, branch), begin, end);
        if (stopped != null) {
            return answer(guard, stopped, null);
        }
        ExpireConfig config = table.coreOptions().expireConfig();
        ExpireSnapshotsImpl expiry = (ExpireSnapshotsImpl) table.newExpireSnapshots().config(config);
        // Changelogs that are kept longer than snapshots stay: the caller's range says nothing of them.
        expiry.snapshotDeletion().setChangelogDecoupled(config.isChangelogDecoupled());
        return answer(guard, null, new Integer(expiry.expireUntil(begin, end)));
    }

    /**
     * Expires the changelogs from `begin` up to, and without, `end`, of snapshots that are gone, by Paimon's own expiry.
     * The rest is as for snapshots. Paimon reads the changelog `end` for what is to stay, so the newest one never goes.
     */
    public String expireChangelogs(
            String location,
            Map options,
            Configuration hadoop,
            String branch,
            long begin,
            long end,
            String named,
            boolean rehearsal) {
        Path root = new Path(location);
        Guard guard = new Guard(open(root, options, hadoop), root, new HashSet(lines(named)), rehearsal);
        FileStoreTable table = table(guard, root, branch);
        ConsumerManager consumers = new ConsumerManager(guard, root, branch);
        String stopped = stoppedChangelogs(table.snapshotManager(), consumers, begin, end);
        if (stopped != null) {
            return answer(guard, stopped, null);
        }
        ExpireConfig config = table.coreOptions().expireConfig();
        ExpireChangelogImpl expiry = (ExpireChangelogImpl) table.newExpireChangelog().config(config);
        return answer(guard, null, new Integer(expiry.expireUntil(begin, end)));
    }

    /** What an expiry did, or why it was not tried. */
    private static String answer(Guard guard, String stopped, Integer count) {
        Map answer = new LinkedHashMap();
        answer.put("stopped", stopped);
        if (count != null) {
            answer.put("count", count);
        }
        answer.put("removed", guard.removed);
        answer.put("unnamed", guard.unnamed);
        answer.put("failed", guard.failed);
        return JsonSerdeUtil.toFlatJson(answer);
    }

    /** Why a range of changelogs cannot go as it is, looked at right before it would. */
    private static String stoppedChangelogs(
            SnapshotManager snapshots, ConsumerManager consumers, long begin, long end) {
        Long earliest = snapshots.earliestLongLivedChangelogId();
        if (earliest == null || earliest.longValue() != begin) {
            return "changelog " + begin + " is not the earliest any more, " + earliest + " is";
        }
        for (long id = begin; id <= end; id++) {
            if (!snapshots.longLivedChangelogExists(id)) {
                return "changelog " + id + " is missing";
            }
        }
        long next = consumers.minNextSnapshot().orElse(Long.MAX_VALUE);
        return next < end ? "a consumer reads snapshot " + next + " next" : null;
    }

    /** Why a range cannot go as it is, looked at right before it would. */
    private static String stopped(SnapshotManager snapshots, ConsumerManager consumers, long begin, long end) {
        Long earliest = snapshots.earliestSnapshotId();
        if (earliest == null || earliest.longValue() != begin) {
            return "snapshot " + begin + " is not the earliest any more, " + earliest + " is";
        }
        for (long id = begin; id <= end; id++) {
            if (!snapshots.snapshotExists(id)) {
                return "snapshot " + id + " is missing";
            }
        }
        long next = consumers.minNextSnapshot().orElse(Long.MAX_VALUE);
        return next < end ? "a consumer reads snapshot " + next + " next" : null;
    }

    private static Collection lines(String text) {
        return text.isEmpty() ? new ArrayList() : Arrays.asList(text.split("\n"));
    }

    private static Path path(FileStorePathFactory paths, ManifestEntry entry) {
        return new Path(paths.bucketPath(entry.partition(), entry.bucket()), entry.file().fileName());
    }

    static String relative(Path root, Path path) {
        String folder = root.toString() + "/";
        String whole = path.toString();
        return whole.startsWith(folder) ? whole.substring(folder.length()) : whole;
    }

    private static FileStoreTable table(FileIO files, Path root, String branch) {
        TableSchema schema = (TableSchema) new SchemaManager(files, root, "main").latest().get();
        Map settings = new HashMap(schema.options());
        settings.remove("scan.fallback-branch");
        settings.put("snapshot.clean-empty-directories", "true");
        FileStoreTable table = FileStoreTableFactory.create(files, root, schema.copy(settings));
        return branch.equals("main") ? table : table.switchToBranch(branch);
    }

    private static FileIO open(Path root, Map options, Configuration hadoop) {
        try {
            return FileIO.get(root, CatalogContext.create(Options.fromMap(options), hadoop));
        } catch (Throwable error) {
            throw broken(root.toString(), error);
        }
    }

    static Failed broken(String what, Throwable error) {
        Throwable cause = error;
        while (cause.getCause() != null) {
            cause = cause.getCause();
        }
        return new Failed(what + ": " + String.valueOf(cause.getMessage()).split("\n")[0]);
    }

    /** A store in which only named files can be removed. Paimon only logs what it could not remove; this remembers. */
    public static class Guard implements FileIO {
        final Set removed = Collections.synchronizedSet(new TreeSet());
        final Set unnamed = Collections.synchronizedSet(new TreeSet());
        final Map failed = Collections.synchronizedMap(new TreeMap());
        private final FileIO store;
        private final Path root;
        private final Set named;
        private final boolean rehearsal;

        public Guard(FileIO store, Path root, Set named, boolean rehearsal) {
            this.store = store;
            this.root = root;
            this.named = named;
            this.rehearsal = rehearsal;
        }

        public boolean delete(Path path, boolean recursive) throws IOException {
            String name = relative(root, path);
            if (!named.contains(name)) {
                if (!store.exists(path)) {
                    return true;
                }
                if (!recursive && store.getFileStatus(path).isDir()) {
                    // An empty folder; the store refuses to remove one that is not.
                    return !rehearsal && store.delete(path, false);
                }
                unnamed.add(name);
                throw new IOException("not named: " + name);
            }
            if (rehearsal) {
                removed.add(name);
                return true;
            }
            try {
                boolean gone = store.delete(path, false) || !store.exists(path);
                if (gone) {
                    removed.add(name);
                } else {
                    failed.put(name, "the store did not remove it");
                }
                return gone;
            } catch (IOException error) {
                failed.put(name, String.valueOf(error.getMessage()).split("\n")[0]);
                throw error;
            }
        }

        public boolean tryToWriteAtomic(Path path, String content) throws IOException {
            return rehearsal || store.tryToWriteAtomic(path, content);
        }

        public void overwriteFileUtf8(Path path, String content) throws IOException {
            if (!rehearsal) {
                store.overwriteFileUtf8(path, content);
            }
        }

        public void writeFile(Path path, String content, boolean overwrite) throws IOException {
            if (!rehearsal) {
                store.writeFile(path, content, overwrite);
            }
        }

        public PositionOutputStream newOutputStream(Path path, boolean overwrite) {
            throw new UnsupportedOperationException("expiry writes small texts only");
        }

        public boolean mkdirs(Path path) {
            throw new UnsupportedOperationException("expiry makes no folder");
        }

        public boolean rename(Path from, Path to) {
            throw new UnsupportedOperationException("expiry moves nothing");
        }

        public SeekableInputStream newInputStream(Path path) throws IOException {
            return store.newInputStream(path);
        }

        public boolean isObjectStore() {
            return store.isObjectStore();
        }

        public void configure(CatalogContext context) {
            store.configure(context);
        }

        public FileStatus getFileStatus(Path path) throws IOException {
            return store.getFileStatus(path);
        }

        public FileStatus[] listStatus(Path path) throws IOException {
            return store.listStatus(path);
        }

        public boolean exists(Path path) throws IOException {
            return store.exists(path);
        }
    }

    /** One sentence for people; the stack trace stays here. */
    public static class Failed extends RuntimeException {
        public Failed(String message) {
            super(message);
        }
    }
}
