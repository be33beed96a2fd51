import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.file.CopyOption;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;

import org.apache.hadoop.conf.Configuration;
import org.apache.paimon.CoreOptions;
import org.apache.paimon.KeyValue;
import org.apache.paimon.KeyValueFileStore;
import org.apache.paimon.Snapshot;
import org.apache.paimon.catalog.CatalogContext;
import org.apache.paimon.data.BinaryRow;
import org.apache.paimon.data.BinaryString;
import org.apache.paimon.data.Decimal;
import org.apache.paimon.data.InternalRow;
import org.apache.paimon.data.serializer.InternalRowSerializer;
import org.apache.paimon.deletionvectors.DeletionVector;
import org.apache.paimon.fs.FileIO;
import org.apache.paimon.fs.Path;
import org.apache.paimon.index.IndexFileMeta;
import org.apache.paimon.io.DataFileMeta;
import org.apache.paimon.io.KeyValueFileReaderFactory;
import org.apache.paimon.manifest.FileKind;
import org.apache.paimon.manifest.FileSource;
import org.apache.paimon.manifest.IndexManifestEntry;
import org.apache.paimon.manifest.ManifestEntry;
import org.apache.paimon.manifest.ManifestFile;
import org.apache.paimon.manifest.ManifestFileMeta;
import org.apache.paimon.manifest.ManifestList;
import org.apache.paimon.operation.FileStoreCommitImpl;
import org.apache.paimon.options.Options;
import org.apache.paimon.reader.RecordReader;
import org.apache.paimon.schema.SchemaManager;
import org.apache.paimon.schema.TableSchema;
import org.apache.paimon.stats.SimpleStats;
import org.apache.paimon.stats.Statistics;
import org.apache.paimon.stats.StatsFileHandler;
import org.apache.paimon.table.BucketMode;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.table.FileStoreTableFactory;
import org.apache.paimon.table.sink.CommitMessageImpl;
import org.apache.paimon.table.source.DataSplit;
import org.apache.paimon.table.source.DeletionFile;
import org.apache.paimon.tag.Tag;
import org.apache.paimon.types.ArrayType;
import org.apache.paimon.types.DataField;
import org.apache.paimon.types.DataType;
import org.apache.paimon.types.LocalZonedTimestampType;
import org.apache.paimon.types.MapType;
import org.apache.paimon.types.MultisetType;
import org.apache.paimon.types.RowType;
import org.apache.paimon.types.TimestampType;
import org.apache.paimon.utils.FileStorePathFactory;
import org.apache.paimon.utils.JsonSerdeUtil;

/**
 * Rewrites files of one Paimon table, of a branch's head or of a tag (`rewrite.py`). Spark reads and writes the rows;
 * here is told which splits those are, and what was written takes the place of what was read, in one commit.
 *
 * <p>What is rewritten is a file of an append table, or a whole bucket of a table with a primary key: there a row of
 * one file hides rows of others. Names of data files are told apart without their folders: each has an id of its own.
 */
public class Rewriting {

    static final String USER = "ebbtide-erasure-";
    static final String REWRITTEN = "ebbtide-rewritten-";
    private static final String DELETION_VECTORS = "DELETION_VECTORS";

    /** A branch's head, or a tag, as it was when it was opened. */
    public static class State {
        final FileIO files;
        final Path root;
        final FileStoreTable table;
        final Snapshot snapshot;
        final Path tag;
        final String text;
        final List entries;
        final List indexes;

        State(FileIO files, Path root, FileStoreTable table, Snapshot snapshot, Path tag, String text) {
            this.files = files;
            this.root = root;
            this.table = table;
            this.snapshot = snapshot;
            this.tag = tag;
            this.text = text;
            this.entries = snapshot == null
                    ? new ArrayList()
                    : table.store().newScan().withSnapshot(snapshot).plan().files();
            this.indexes = snapshot == null || snapshot.indexManifest() == null
                    ? new ArrayList()
                    : table.store().indexManifestFileFactory().create().read(snapshot.indexManifest());
        }

        boolean hasKey() {
            return !table.schema().primaryKeys().isEmpty();
        }
    }

    /** Why rows of a branch cannot be written anew, or null. */
    public String refusal(String location, Map options, Configuration hadoop, String branch) {
        try {
            return cannot(branch(location, options, hadoop, branch));
        } catch (Throwable error) {
            throw broken("a branch cannot be opened", error);
        }
    }

    private static FileStoreTable branch(String location, Map options, Configuration hadoop, String branch)
            throws Throwable {
        Path root = new Path(location);
        FileIO files = FileIO.get(root, CatalogContext.create(Options.fromMap(options), hadoop));
        TableSchema schema = (TableSchema) new SchemaManager(files, root, "main").latest().get();
        Map settings = new HashMap(schema.options());
        settings.remove("scan.fallback-branch");
        FileStoreTable table = FileStoreTableFactory.create(files, root, schema.copy(settings));
        return branch.equals("main") ? table : table.switchToBranch(branch);
    }

    /** Opens the head of a branch; or a tag in its folder, with the schema that its snapshot has. */
    public State open(String location, Map options, Configuration hadoop, String branch, String tag) {
        try {
            Path root = new Path(location);
            FileStoreTable table = branch(location, options, hadoop, branch);
            FileIO files = table.fileIO();
            if (tag.isEmpty()) {
                return new State(files, root, table, table.snapshotManager().latestSnapshot(), null, null);
            }
            Path folder = branch.equals("main") ? root : new Path(root, "branch/branch-" + branch);
            Path path = new Path(folder, "tag/tag-" + tag);
            String text = files.readFileUtf8(path);
            Snapshot snapshot = Tag.fromJson(text);
            TableSchema own = new SchemaManager(files, root, branch).schema(snapshot.schemaId());
            FileStoreTable then = FileStoreTableFactory.create(files, root, own.copy(table.schema().options()));
            return new State(files, root, then, snapshot, path, text);
        } catch (Throwable error) {
            throw broken("a branch or tag cannot be opened", error);
        }
    }

    /**
     * What there is: `id` of the snapshot, or null; `files`, each [name, path below the root, bytes, bucket, bounds], a
     * bucket being a number of this answer; `hiding`, lists of files whose deletion vectors share an index file;
     * the columns of its `key`; the bounds of what manifests say `more` than what is live; whether a key's bucket
     * is `fixed`; and the columns that `statistics` have. Bounds are a map of each of these columns to lists of [type, low, high].
     */
    public String describe(State state, String columns) {
        Set named = new HashSet(lines(columns));
        Map answer = new LinkedHashMap();
        answer.put("id", state.snapshot == null ? null : Long.valueOf(state.snapshot.id()));
        answer.put("key", new ArrayList(state.table.schema().trimmedPrimaryKeys()));
        Map buckets = new HashMap();
        List files = new ArrayList();
        Set live = new HashSet();
        FileStorePathFactory paths = state.table.store().pathFactory();
        Iterator bounds = bounds(state, state.entries, named).iterator();
        for (Object item : state.entries) {
            ManifestEntry entry = (ManifestEntry) item;
            Object key = bucket(entry.partition(), entry.bucket());
            if (!buckets.containsKey(key)) {
                buckets.put(key, Integer.valueOf(buckets.size()));
            }
            Path path = new Path(paths.bucketPath(entry.partition(), entry.bucket()), entry.file().fileName());
            List one = new ArrayList();
            one.add(entry.file().fileName());
            one.add(relative(state.root, path));
            one.add(Long.valueOf(entry.file().fileSize()));
            one.add(buckets.get(key));
            one.add(bounds.next());
            files.add(one);
            live.add(entry.file().fileName());
        }
        answer.put("files", files);
        answer.put("hiding", together(state));
        answer.put("more", bounds(state, dead(state, live), named));
        Statistics known = statistics(state);
        answer.put("fixed", Boolean.valueOf(state.table.bucketMode() != BucketMode.HASH_DYNAMIC));
        answer.put("statistics", known == null ? new ArrayList() : new ArrayList(known.colStats().keySet()));
        return JsonSerdeUtil.toFlatJson(answer);
    }

    /**
     * By which ids each of these columns is known, and what is inside of it: one line for each path, which is empty
     * where there is no such column.
     */
    public String shape(State state, String columns) {
        StringBuilder found = new StringBuilder();
        for (Object path : lines(columns)) {
            String rest = (String) path;
            DataField field = null;
            while (field == null && rest != null) {
                for (Object item : state.table.schema().fields()) {
                    field = ((DataField) item).name().equalsIgnoreCase(rest) ? (DataField) item : field;
                }
                rest = rest.lastIndexOf('.') < 0 ? null : rest.substring(0, rest.lastIndexOf('.'));
            }
            found.append(field == null ? "" : field.id() + shape(field.type())).append('\n');
        }
        return found.toString();
    }

    private static String shape(DataType type) {
        StringBuilder found = new StringBuilder();
        if (type instanceof ArrayType) {
            found.append('[').append(shape(((ArrayType) type).getElementType())).append(']');
        } else if (type instanceof MapType) {
            found.append('<').append(shape(((MapType) type).getKeyType())).append(',');
            found.append(shape(((MapType) type).getValueType())).append('>');
        } else if (type instanceof RowType) {
            for (Object item : ((RowType) type).getFields()) {
                DataField field = (DataField) item;
                found.append('{').append(field.id()).append(' ').append(field.name()).append(shape(field.type())).append('}');
            }
        }
        return found.toString();
    }

    /** Why rows of a state cannot be written anew, or null. */
    public String unfit(State state) {
        return cannot(state.table);
    }

    /** Why what is written anew might not read as before. */
    private static String cannot(FileStoreTable table) {
        CoreOptions options = table.coreOptions();
        if (options.expireConfig().isChangelogDecoupled()) {
            return "its changelogs are kept longer than its snapshots, and the newest of them never goes";
        }
        for (Object field : table.schema().fields()) {
            if (isCut(((DataField) field).type())) {
                return "it has times of a higher precision than microseconds, which Spark would cut";
            }
        }
        if (table.schema().primaryKeys().isEmpty()) {
            return null;
        }
        if (options.mergeEngine() != CoreOptions.MergeEngine.DEDUPLICATE) {
            return "its rows are put together from several (merge engine " + options.mergeEngine() + ")";
        }
        if (options.rowkindField().isPresent()) {
            return "a column of it says which rows are deleted (rowkind.field)";
        }
        BucketMode mode = table.bucketMode();
        return mode == BucketMode.HASH_FIXED || mode == BucketMode.HASH_DYNAMIC
                ? null
                : "a key of it may move from partition to partition";
    }

    /** Whether a type is a time that Spark does not hold as it is, or has one inside. */
    private static boolean isCut(DataType type) {
        if (type instanceof TimestampType) {
            return ((TimestampType) type).getPrecision() > 6;
        } else if (type instanceof LocalZonedTimestampType) {
            return ((LocalZonedTimestampType) type).getPrecision() > 6;
        } else if (type instanceof ArrayType) {
            return isCut(((ArrayType) type).getElementType());
        } else if (type instanceof MultisetType) {
            return isCut(((MultisetType) type).getElementType());
        } else if (type instanceof MapType) {
            return isCut(((MapType) type).getKeyType()) || isCut(((MapType) type).getValueType());
        } else if (type instanceof RowType) {
            for (Object field : ((RowType) type).getFields()) {
                if (isCut(((DataField) field).type())) {
                    return true;
                }
            }
        }
        return false;
    }

    /** Files with a deletion vector, each list those that share an index file: that goes as a whole. */
    private static List together(State state) {
        List found = new ArrayList();
        for (Object item : state.indexes) {
            IndexFileMeta index = ((IndexManifestEntry) item).indexFile();
            if (index.indexType().equals(DELETION_VECTORS) && index.deletionVectorsRanges() != null) {
                found.add(new ArrayList(index.deletionVectorsRanges().keySet()));
            }
        }
        return found;
    }

    /** Entries of manifests that are about files which are not live. */
    private static List dead(State state, Set live) {
        List found = new ArrayList();
        if (state.snapshot != null) {
            ManifestFile reader = state.table.store().manifestFileFactory().create();
            for (Object listed : state.table.store().manifestListFactory().create().readDataManifests(state.snapshot)) {
                for (Object item : reader.read(((ManifestFileMeta) listed).fileName())) {
                    ManifestEntry entry = (ManifestEntry) item;
                    if (entry.kind() == FileKind.DELETE || !live.contains(entry.file().fileName())) {
                        found.add(entry);
                    }
                }
            }
        }
        return found;
    }

    private static List bounds(State state, List entries, Set columns) {
        Map schemas = new HashMap();
        SchemaManager manager = new SchemaManager(state.files, state.root, state.table.coreOptions().branch());
        RowType partitions = state.table.schema().logicalPartitionType();
        Map names = new HashMap();
        for (Object field : state.table.schema().fields()) {
            if (columns.contains(((DataField) field).name())) {
                names.put(Integer.valueOf(((DataField) field).id()), ((DataField) field).name());
            }
        }
        List found = new ArrayList();
        for (Object item : entries) {
            ManifestEntry entry = (ManifestEntry) item;
            Map one = new LinkedHashMap();
            Long id = Long.valueOf(entry.file().schemaId());
            if (!schemas.containsKey(id)) {
                schemas.put(id, manager.schema(id.longValue()));
            }
            TableSchema schema = (TableSchema) schemas.get(id);
            SimpleStats stats = entry.file().valueStats();
            add(one, names, schema.logicalRowType(), stats.minValues(), stats.maxValues());
            if (!schema.primaryKeys().isEmpty()) {
                RowType keys = schema.logicalTrimmedPrimaryKeysType();
                add(one, names, keys, entry.file().minKey(), entry.file().maxKey());
            }
            add(one, names, partitions, entry.partition(), entry.partition());
            found.add(one);
        }
        return found;
    }

    /** Adds the bounds of columns by the `names` that their ids have today: a name may have been another column's. */
    private static void add(Map found, Map names, RowType type, BinaryRow low, BinaryRow high) {
        boolean fits = low.getFieldCount() == type.getFieldCount() && high.getFieldCount() == type.getFieldCount();
        InternalRow.FieldGetter[] getters = type.fieldGetters();
        for (int i = 0; i < getters.length; i++) {
            Object name = names.get(Integer.valueOf(((DataField) type.getFields().get(i)).id()));
            if (name == null) {
                continue;
            }
            List one = new ArrayList();
            Object least = fits ? getters[i].getFieldOrNull(low) : null;
            Object most = fits ? getters[i].getFieldOrNull(high) : null;
            one.add(kind(least));
            one.add(kind(least).isEmpty() ? null : String.valueOf(least));
            one.add(kind(least).isEmpty() || most == null ? null : String.valueOf(most));
            // Bounds of keys and of partitions are whole; where a column has two, either may tell.
            List all = found.containsKey(name) ? (List) found.get(name) : new ArrayList();
            all.add(one);
            found.put(name, all);
        }
    }

    private static String kind(Object value) {
        if (value instanceof BinaryString) {
            return "text";
        } else if (value instanceof Decimal) {
            return "decimal";
        } else if (value instanceof Byte || value instanceof Short || value instanceof Integer || value instanceof Long) {
            return "int";
        }
        return "";
    }

    /** The files of these names, each alone and as it is stored: nothing hides rows of it, nothing is merged. */
    public DataSplit[] bare(State state, String names) {
        Set wanted = new HashSet(lines(names));
        List found = new ArrayList();
        for (Object item : state.entries) {
            ManifestEntry entry = (ManifestEntry) item;
            if (wanted.contains(entry.file().fileName())) {
                found.add(split(state, entry, Collections.singletonList(entry.file()), false, true));
            }
        }
        return (DataSplit[]) found.toArray(new DataSplit[0]);
    }

    /** The same files as readers see them: alone on an append table, all of a bucket together where there is a key. */
    public DataSplit[] seen(State state, String names) {
        Set wanted = new HashSet(lines(names));
        Map buckets = new LinkedHashMap();
        List found = new ArrayList();
        for (Object item : state.entries) {
            ManifestEntry entry = (ManifestEntry) item;
            if (!wanted.contains(entry.file().fileName())) {
                continue;
            }
            if (!state.hasKey()) {
                found.add(split(state, entry, Collections.singletonList(entry.file()), true, true));
                continue;
            }
            Object key = bucket(entry.partition(), entry.bucket());
            if (!buckets.containsKey(key)) {
                buckets.put(key, new ArrayList());
            }
            ((List) buckets.get(key)).add(entry);
        }
        for (Object item : buckets.values()) {
            List files = new ArrayList();
            for (Object entry : (List) item) {
                files.add(((ManifestEntry) entry).file());
            }
            // Not raw: files of level 0 are merged with the others, though readers of vectors do not see them yet.
            found.add(split(state, (ManifestEntry) ((List) item).get(0), files, true, false));
        }
        return (DataSplit[]) found.toArray(new DataSplit[0]);
    }

    private static DataSplit split(State state, ManifestEntry entry, List files, boolean hides, boolean raw) {
        DataSplit.Builder builder = new DataSplit.Builder();
        builder = builder.withSnapshot(state.snapshot.id()).withPartition(entry.partition());
        builder = builder.withBucket(entry.bucket()).withDataFiles(files).isStreaming(false).rawConvertible(raw);
        FileStorePathFactory paths = state.table.store().pathFactory();
        builder = builder.withBucketPath(paths.bucketPath(entry.partition(), entry.bucket()).toString());
        List vectors = hides ? vectors(state, files) : null;
        return (vectors == null ? builder : builder.withDataDeletionFiles(vectors)).build();
    }

    /** The deletion vector of each file, or null; null where there is none at all. */
    private static List vectors(State state, List files) {
        List found = new ArrayList();
        boolean any = false;
        for (Object item : files) {
            String name = ((DataFileMeta) item).fileName();
            DeletionFile vector = null;
            for (Object index : state.indexes) {
                IndexFileMeta meta = ((IndexManifestEntry) index).indexFile();
                if (meta.indexType().equals(DELETION_VECTORS) && meta.deletionVectorsRanges() != null) {
                    org.apache.paimon.utils.Pair range =
                            (org.apache.paimon.utils.Pair) meta.deletionVectorsRanges().get(name);
                    if (range != null) {
                        Path path = state.table.store().pathFactory().indexFileFactory().toPath(meta.fileName());
                        vector = new DeletionFile(path.toString(), ((Integer) range.getLeft()).longValue(),
                                ((Integer) range.getRight()).longValue());
                        any = true;
                    }
                }
            }
            found.add(vector);
        }
        return any ? found : null;
    }

    /**
     * Those of these files whose first or last key is not what the manifest says: Paimon's compaction keeps the key
     * that it read last, which may be one that it just dropped.
     */
    public String misnamed(State state, String names) {
        Set wanted = new HashSet(lines(names));
        StringBuilder found = new StringBuilder();
        KeyValueFileStore store = (KeyValueFileStore) state.table.store();
        KeyValueFileReaderFactory.Builder builder = store.newReaderFactoryBuilder();
        InternalRowSerializer serializer = new InternalRowSerializer(builder.keyType());
        for (Object item : state.entries) {
            ManifestEntry entry = (ManifestEntry) item;
            DataFileMeta file = entry.file();
            if (wanted.contains(file.fileName())) {
                try {
                    KeyValueFileReaderFactory factory =
                            builder.build(entry.partition(), entry.bucket(), DeletionVector.emptyFactory());
                    BinaryRow[] keys = keys(serializer, factory.createRecordReader(
                            file.schemaId(), file.fileName(), file.fileSize(), file.level()));
                    if (keys[0] != null && !(keys[0].equals(file.minKey()) && keys[1].equals(file.maxKey()))) {
                        found.append(file.fileName()).append('\n');
                    }
                } catch (Throwable error) {
                    throw broken("the keys of a file cannot be read", error);
                }
            }
        }
        return found.toString();
    }

    private static BinaryRow[] keys(InternalRowSerializer serializer, RecordReader reader) throws Throwable {
        BinaryRow[] found = new BinaryRow[2];
        try {
            for (RecordReader.RecordIterator batch = reader.readBatch(); batch != null; batch = reader.readBatch()) {
                for (Object row = batch.next(); row != null; row = batch.next()) {
                    found[1] = serializer.toBinaryRow(((KeyValue) row).key()).copy();
                    found[0] = found[0] == null ? found[1] : found[0];
                }
                batch.releaseBatch();
            }
        } finally {
            reader.close();
        }
        return found;
    }

    /** The table that a state is of. */
    public FileStoreTable table(State state) {
        return state.table;
    }

    /** The same folder and columns without a key: its reader merges nothing. */
    public FileStoreTable keyless(State state) {
        TableSchema schema = state.table.schema();
        Map options = new HashMap();
        for (String name : new String[] {"path", "partition.default-name", "branch"}) {
            if (schema.options().containsKey(name)) {
                options.put(name, schema.options().get(name));
            }
        }
        options.put("bucket", "-1");
        TableSchema plain = new TableSchema(schema.id(), schema.fields(), schema.highestFieldId(),
                schema.partitionKeys(), new ArrayList(), options, schema.comment());
        return FileStoreTableFactory.create(state.files, state.root, plain);
    }

    /** The table as it is written: no compaction, no changelog of its own, nothing that hides rows. */
    public FileStoreTable writer(State state) {
        Map options = new HashMap(state.table.schema().options());
        options.put("write-only", "true");
        options.put("changelog-producer", "none");
        options.put("deletion-vectors.enabled", "false");
        return FileStoreTableFactory.create(state.files, state.root, state.table.schema().copy(options));
    }

    /** How many rows, and bytes, messages of a writer have in how many files. */
    public String written(List messages) {
        long rows = 0;
        long bytes = 0;
        int count = 0;
        for (Object item : messages) {
            for (Object file : ((CommitMessageImpl) item).newFilesIncrement().newFiles()) {
                rows += ((DataFileMeta) file).rowCount();
                bytes += ((DataFileMeta) file).fileSize();
                count++;
            }
        }
        Map answer = new LinkedHashMap();
        answer.put("rows", Long.valueOf(rows));
        answer.put("bytes", Long.valueOf(bytes));
        answer.put("files", Integer.valueOf(count));
        return JsonSerdeUtil.toFlatJson(answer);
    }

    /** Removes what a writer wrote and nobody committed. */
    public void abort(State state, List messages) {
        FileStoreCommitImpl commit = (FileStoreCommitImpl) state.table.store().newCommit(USER + UUID.randomUUID());
        try {
            commit.abort(messages);
            for (Object message : messages) {
                for (Object file : ((CommitMessageImpl) message).indexIncrement().newIndexFiles()) {
                    String name = ((IndexFileMeta) file).fileName();
                    state.files.deleteQuietly(state.table.store().pathFactory().indexFileFactory().toPath(name));
                }
            }
        } finally {
            commit.close();
        }
    }

    /** Puts what was written in the place of files, on top of the very head that was opened; false where it moved. */
    public boolean replace(State state, List messages, String names) {
        Change change = change(state, messages, names);
        List files = new ArrayList(change.gone);
        files.addAll(change.added);
        return commit(state.table, state.snapshot, files, change.indexes, null, Snapshot.CommitKind.OVERWRITE);
    }

    /**
     * A commit of nothing, after which the head's manifests name live files only, each with its own bounds, and its
     * statistics have none of these columns; false where the head moved.
     */
    public boolean cleanse(State state, String columns) {
        Map options = new HashMap(state.table.schema().options());
        options.put("manifest.full-compaction-threshold-size", "1 b");
        options.put("manifest.merge-min-count", "1");
        FileStoreTable table =
                FileStoreTableFactory.create(state.files, state.root, state.table.schema().copy(options));
        Statistics known = statistics(state);
        String fresh = null;
        if (known != null) {
            Map left = new HashMap(known.colStats());
            if (left.keySet().removeAll(lines(columns))) {
                Long rows = known.mergedRecordCount().isPresent()
                        ? Long.valueOf(known.mergedRecordCount().getAsLong()) : null;
                Long bytes = known.mergedRecordSize().isPresent()
                        ? Long.valueOf(known.mergedRecordSize().getAsLong()) : null;
                fresh = table.store().newStatsFileHandler().writeStats(
                        new Statistics(known.snapshotId(), known.schemaId(), rows, bytes, left));
            }
        }
        return commit(table, state.snapshot, new ArrayList(), new ArrayList(), fresh, Snapshot.CommitKind.APPEND);
    }

    /** The text of a tag that has what was written in the place of files; its id and its times are as before. */
    public String tagged(State state, List messages, String names) {
        Change change = change(state, messages, names);
        List live = new ArrayList(change.kept);
        live.addAll(change.added);
        ManifestFile manifests = state.table.store().manifestFileFactory().create();
        ManifestList lists = state.table.store().manifestListFactory().create();
        String base = lists.write(manifests.write(live));
        String delta = lists.write(new ArrayList());
        Set dropped = new HashSet();
        for (Object item : change.indexes) {
            IndexManifestEntry entry = (IndexManifestEntry) item;
            if (entry.kind() == FileKind.DELETE) {
                dropped.add(entry.indexFile().fileName());
            }
        }
        List indexes = new ArrayList();
        for (Object item : state.indexes) {
            if (!dropped.contains(((IndexManifestEntry) item).indexFile().fileName())) {
                indexes.add(item);
            }
        }
        String index = indexes.isEmpty()
                ? null : state.table.store().indexManifestFileFactory().create().writeWithoutRolling(indexes);
        Tag old = Tag.fromJson(state.text);
        return new Tag(Integer.valueOf(old.version()), old.id(), old.schemaId(), base, delta, null, index,
                        REWRITTEN + UUID.randomUUID().toString(), Long.MAX_VALUE, Snapshot.CommitKind.OVERWRITE,
                        old.timeMillis(), old.logOffsets(), Long.valueOf(ManifestEntry.recordCountAdd(live)),
                        Long.valueOf(0), Long.valueOf(0), old.watermark(), null, old.getTagCreateTime(),
                        old.getTagTimeRetained())
                .toJson();
    }

    /** The text of a tag that has what another one has, which was of the same snapshot and was rewritten. */
    public String like(State state, String text) {
        Tag old = Tag.fromJson(state.text);
        Tag right = Tag.fromJson(text);
        return new Tag(Integer.valueOf(right.version()), right.id(), right.schemaId(), right.baseManifestList(),
                        right.deltaManifestList(), null, right.indexManifest(), right.commitUser(),
                        right.commitIdentifier(), right.commitKind(), right.timeMillis(), right.logOffsets(),
                        right.totalRecordCount(), right.deltaRecordCount(), right.changelogRecordCount(),
                        right.watermark(), null, old.getTagCreateTime(), old.getTagTimeRetained())
                .toJson();
    }

    /** Gives a tag another text; false where it is not the one that was opened any more. */
    public boolean retag(State state, String text) {
        try {
            if (!state.files.exists(state.tag) || !state.files.readFileUtf8(state.tag).equals(state.text)) {
                return false;
            }
            put(state.files, state.tag, text);
            return true;
        } catch (Throwable error) {
            throw broken("a tag cannot be written", error);
        }
    }

    /** Writes a file as a whole: who reads it, and who finds it after a crash, has the one text or the other. */
    private static void put(FileIO files, Path path, String text) throws Throwable {
        String scheme = path.toUri().getScheme();
        if (scheme == null || scheme.equals("file")) {
            Path beside = new Path(path.getParent(), "." + path.getName() + ".ebbtide");
            files.overwriteFileUtf8(beside, text);
            Files.move(Paths.get(beside.toUri().getPath(), new String[0]), Paths.get(path.toUri().getPath(), new String[0]),
                    new CopyOption[] {StandardCopyOption.ATOMIC_MOVE});
        } else {
            // Hadoop renames, and an object is there as a whole.
            files.overwriteFileUtf8(path, text);
        }
    }

    /** The text of a tag as it was opened. */
    public String text(State state) {
        return state.text;
    }

    /** Tells readers of a branch where it begins: what is older goes. */
    public void begin(String location, Map options, Configuration hadoop, String branch, long id) {
        try {
            Path root = new Path(location);
            FileIO files = FileIO.get(root, CatalogContext.create(Options.fromMap(options), hadoop));
            files.overwriteFileUtf8(
                    new Path(root, "branch/branch-" + branch + "/snapshot/EARLIEST"), String.valueOf(id));
        } catch (Throwable error) {
            throw broken("where a branch begins cannot be written", error);
        }
    }

    /** The change; where it may not be made, what was written goes again. */
    private Change change(State state, List messages, String names) {
        try {
            return new Change(state, messages, new HashSet(lines(names)));
        } catch (Failed error) {
            abort(state, messages);
            throw error;
        }
    }

    /** What becomes of a state's files and index files when something is written in the place of some of them. */
    static class Change {
        final List kept = new ArrayList();
        final List gone = new ArrayList();
        final List added = new ArrayList();
        final List indexes = new ArrayList();

        Change(State state, List messages, Set names) {
            Map totals = new HashMap();
            Map newest = new HashMap();
            for (Object item : state.entries) {
                ManifestEntry entry = (ManifestEntry) item;
                if (names.contains(entry.file().fileName())) {
                    if (state.hasKey() && entry.totalBuckets() != state.table.coreOptions().bucket()) {
                        throw new Failed("the number of buckets was changed, and this one is of before");
                    }
                    gone.add(new ManifestEntry(
                            FileKind.DELETE, entry.partition(), entry.bucket(), entry.totalBuckets(), entry.file()));
                    Object key = bucket(entry.partition(), entry.bucket());
                    totals.put(key, Integer.valueOf(entry.totalBuckets()));
                    Long known = (Long) newest.get(key);
                    long last = entry.file().maxSequenceNumber();
                    newest.put(key, Long.valueOf(known == null ? last : Math.max(known.longValue(), last)));
                } else {
                    kept.add(entry);
                }
            }
            Map fresh = new LinkedHashMap();
            for (Object item : messages) {
                CommitMessageImpl message = (CommitMessageImpl) item;
                Object key = bucket(message.partition(), message.bucket());
                if (!message.indexIncrement().isEmpty() && !totals.containsKey(key)) {
                    throw new Failed("a key would come to a bucket that it was not in");
                }
                // The index of a dynamic bucket takes the place of the one that it had.
                for (Object file : message.indexIncrement().newIndexFiles()) {
                    indexes.add(new IndexManifestEntry(
                            FileKind.ADD, message.partition(), message.bucket(), (IndexFileMeta) file));
                }
                if (!message.newFilesIncrement().newFiles().isEmpty()) {
                    if (state.hasKey() && !totals.containsKey(key)) {
                        throw new Failed("a row would move to another bucket, where another may have its key");
                    }
                    if (!fresh.containsKey(key)) {
                        fresh.put(key, new ArrayList());
                    }
                    ((List) fresh.get(key)).add(message);
                }
            }
            for (Object item : fresh.entrySet()) {
                Map.Entry bucket = (Map.Entry) item;
                CommitMessageImpl first = (CommitMessageImpl) ((List) bucket.getValue()).get(0);
                Integer total = (Integer) totals.get(bucket.getKey());
                int buckets = total == null ? state.table.coreOptions().bucket() : total.intValue();
                List files = new ArrayList();
                for (Object message : (List) bucket.getValue()) {
                    files.addAll(((CommitMessageImpl) message).newFilesIncrement().newFiles());
                }
                List placed = state.hasKey()
                        ? merged(state.table, files, ((Long) newest.get(bucket.getKey())).longValue()) : files;
                for (Object file : placed) {
                    added.add(new ManifestEntry(
                            FileKind.ADD, first.partition(), first.bucket(), buckets, (DataFileMeta) file));
                }
            }
            for (Object item : state.indexes) {
                IndexManifestEntry entry = (IndexManifestEntry) item;
                Map ranges = entry.indexFile().deletionVectorsRanges();
                if (entry.indexFile().indexType().equals(DELETION_VECTORS)
                        && ranges != null
                        && !Collections.disjoint(ranges.keySet(), names)) {
                    if (!names.containsAll(ranges.keySet())) {
                        throw new Failed("an index file is about files that stay, too");
                    }
                    indexes.add(entry.toDeleteEntry());
                }
            }
        }
    }

    /**
     * A bucket's files at the level of what was merged; readers of deletion vectors see no other. Their rows are older
     * than `newest`, after which a writer counts who began before this commit; whoever begins later counts from there.
     */
    private static List merged(FileStoreTable table, List files, long newest) {
        final Comparator order = ((KeyValueFileStore) table.store()).newKeyComparator();
        List sorted = new ArrayList(files);
        Collections.sort(sorted, new ByKey(order));
        for (int i = 1; i < sorted.size(); i++) {
            BinaryRow before = ((DataFileMeta) sorted.get(i - 1)).maxKey();
            if (order.compare(before, ((DataFileMeta) sorted.get(i)).minKey()) >= 0) {
                throw new Failed("keys of a bucket's new files overlap: nothing was changed");
            }
        }
        List found = new ArrayList();
        for (Object item : sorted) {
            DataFileMeta file = (DataFileMeta) item;
            if (file.maxSequenceNumber() > newest) {
                throw new Failed("rows would be newer than they were");
            }
            found.add(new DataFileMeta(file.fileName(), file.fileSize(), file.rowCount(), file.minKey(), file.maxKey(),
                    file.keyStats(), file.valueStats(), file.minSequenceNumber(), newest, file.schemaId(),
                    table.coreOptions().numLevels() - 1, file.extraFiles(), file.creationTime(),
                    (Long) file.deleteRowCount().orElse(null), file.embeddedIndex(),
                    (FileSource) file.fileSource().orElse(null)));
        }
        return found;
    }

    static class ByKey implements Comparator {
        private final Comparator order;

        ByKey(Comparator order) {
            this.order = order;
        }

        public int compare(Object one, Object other) {
            return order.compare(((DataFileMeta) one).minKey(), ((DataFileMeta) other).minKey());
        }
    }

    private static Statistics statistics(State state) {
        if (state.snapshot == null || state.snapshot.statistics() == null) {
            return null;
        }
        StatsFileHandler handler = state.table.store().newStatsFileHandler();
        return (Statistics) handler.readStats(state.snapshot).orElse(null);
    }

    /** One attempt to commit on top of `head`, as in `Removal`; false where another commit is there already. */
    private static boolean commit(
            FileStoreTable table, Snapshot head, List files, List indexes, String statistics, Snapshot.CommitKind kind) {
        FileStoreCommitImpl commit =
                (FileStoreCommitImpl) table.store().newCommit(USER + UUID.randomUUID().toString());
        try {
            Method check = declared(FileStoreCommitImpl.class, "mustConflictCheck");
            Method once = declared(FileStoreCommitImpl.class, "tryCommitOnce");
            return ((Boolean) once.invoke(
                            commit,
                            new Object[] {
                                files,
                                new ArrayList(),
                                indexes,
                                Long.valueOf(Long.MAX_VALUE),
                                null,
                                new HashMap(),
                                kind,
                                head,
                                check.invoke(null, new Object[0]),
                                table.coreOptions().branch(),
                                statistics
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

    static Object bucket(BinaryRow partition, int bucket) {
        List key = new ArrayList();
        key.add(partition);
        key.add(Integer.valueOf(bucket));
        return key;
    }

    private static Collection lines(String text) {
        return text.isEmpty() ? new ArrayList() : Arrays.asList(text.split("\n"));
    }

    static String relative(Path root, Path path) {
        String folder = root.toString() + "/";
        String whole = path.toString();
        return whole.startsWith(folder) ? whole.substring(folder.length()) : whole;
    }

    /** The kinds of errors alone: words of Paimon's may quote values. */
    static Failed broken(String what, Throwable error) {
        Throwable cause = error;
        while (cause.getCause() != null) {
            cause = cause.getCause();
        }
        return cause instanceof Failed ? (Failed) cause : new Failed(what + ": " + cause.getClass().getSimpleName());
    }

    /** One sentence for people; the stack trace stays here. */
    public static class Failed extends RuntimeException {
        public Failed(String message) {
            super(message);
        }
    }
}
