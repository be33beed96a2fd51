import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

import org.apache.hadoop.conf.Configuration;
import org.apache.paimon.Changelog;
import org.apache.paimon.CoreOptions;
import org.apache.paimon.Snapshot;
import org.apache.paimon.casting.CastExecutor;
import org.apache.paimon.casting.CastExecutors;
import org.apache.paimon.catalog.CatalogContext;
import org.apache.paimon.consumer.Consumer;
import org.apache.paimon.data.BinaryRow;
import org.apache.paimon.data.InternalRow;
import org.apache.paimon.fs.ByteArraySeekableStream;
import org.apache.paimon.fs.FileIO;
import org.apache.paimon.fs.FileStatus;
import org.apache.paimon.fs.Path;
import org.apache.paimon.fs.PositionOutputStream;
import org.apache.paimon.fs.SeekableInputStream;
import org.apache.paimon.io.DataFileMeta;
import org.apache.paimon.manifest.FileKind;
import org.apache.paimon.manifest.FileSource;
import org.apache.paimon.manifest.IndexManifestEntry;
import org.apache.paimon.manifest.ManifestEntry;
import org.apache.paimon.manifest.ManifestFileMeta;
import org.apache.paimon.options.Options;
import org.apache.paimon.schema.SchemaManager;
import org.apache.paimon.schema.TableSchema;
import org.apache.paimon.shade.org.apache.avro.file.DataFileReader;
import org.apache.paimon.shade.org.apache.avro.file.SeekableByteArrayInput;
import org.apache.paimon.shade.org.apache.avro.generic.GenericDatumReader;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.table.FileStoreTableFactory;
import org.apache.paimon.tag.Tag;
import org.apache.paimon.types.DataField;
import org.apache.paimon.types.DataType;
import org.apache.paimon.types.RowType;
import org.apache.paimon.types.VarCharType;
import org.apache.paimon.utils.FileStorePathFactory;
import org.apache.paimon.utils.IOUtils;
import org.apache.paimon.utils.JsonSerdeUtil;
import org.apache.paimon.utils.ObjectsFile;

/**
 * Reads the metadata of one Paimon table in two calls, each of which answers with one JSON text.
 *
 * <p>Paimon's own classes do all of the reading. This class only walks their lists where they are, in the JVM: a call
 * from Python costs 0.2 ms, and a table of 100,000 files needs a million of them. Spark's compiler (Janino) turns this
 * source into a class when the first table is read (`java.py`), which is why it uses neither generics nor lambdas.
 * Nothing is kept between calls, so that several threads may read several tables.
 */
public class Metadata {

    private static final int LIST = 0;
    private static final int MANIFEST = 1;
    private static final int INDEX = 2;
    private static final int READERS = 8;

    /** What the table's small JSON files say: schema, and per branch its snapshots, tags, changelogs and consumers. */
    public String history(String location, Map options, Configuration hadoop) {
        Path root = new Path(location);
        FileIO files = open(root, options, hadoop);
        Map branches = new LinkedHashMap();
        branches.put("main", branch(files, root));
        Map decoupled = new LinkedHashMap();
        TableSchema schema = schema(files, root, "main");
        addDecoupled(decoupled, "main", schema);
        Map settings = new LinkedHashMap();
        for (Object folder : list(files, new Path(root, "branch"), "branch-", true)) {
            String name = ((Path) folder).getName().substring("branch-".length());
            TableSchema own = schema(files, root, name);
            addDecoupled(decoupled, name, own);
            settings.put(name, own.options());
            branches.put(name, branch(files, (Path) folder));
        }
        Map answer = new LinkedHashMap();
        answer.put("schema", schema.toString());
        answer.put("columns", columns(new ArrayList(), "", schema.fields()));
        answer.put("branches", branches);
        answer.put("decoupled", decoupled);
        answer.put("settings", settings);
        return JsonSerdeUtil.toFlatJson(answer);
    }

    /**
     * What manifests say. All `lists` are read, those of `optional` only where they exist; of the manifests that they
     * name, those of `opened` lists. Names come one a line. An entry is [adds, folder, name, bytes, rows, deleted rows,
     * compacted, extra files], a folder is [path, partition], a partition its values, an index file [type, path,
     * bytes, partition].
     */
    public String manifests(
            String location,
            Map options,
            Configuration hadoop,
            String lists,
            String optional,
            String opened,
            String indexes) {
        FileStoreTable table = table(location, options, hadoop);
        FileStorePathFactory paths = table.store().pathFactory();
        Folders folders = new Folders(paths, table.schema().logicalPartitionType());

        Map listed = new LinkedHashMap();
        Collection names = new LinkedHashSet();
        Collection wanted = new HashSet(lines(opened));
        for (Object item : readAll(table, LIST, lines(lists), new HashSet(lines(optional))).entrySet()) {
            Map.Entry list = (Map.Entry) item;
            List named = new ArrayList();
            for (Object content : (List) list.getValue()) {
                ManifestFileMeta meta = (ManifestFileMeta) content;
                List one = new ArrayList();
                one.add(meta.fileName());
                one.add(meta.fileSize());
                one.add(meta.numAddedFiles());
                one.add(meta.numDeletedFiles());
                named.add(one);
                if (wanted.contains(list.getKey())) {
                    names.add(meta.fileName());
                }
            }
            listed.put(list.getKey(), named);
        }
        Map entries = new LinkedHashMap();
        for (Object item : readAll(table, MANIFEST, names, new HashSet()).entrySet()) {
            Map.Entry manifest = (Map.Entry) item;
            List found = new ArrayList();
            for (Object entry : (List) manifest.getValue()) {
                found.add(entry((ManifestEntry) entry, folders));
            }
            entries.put(manifest.getKey(), found);
        }
        Map indexed = new LinkedHashMap();
        for (Object item : readAll(table, INDEX, lines(indexes), new HashSet()).entrySet()) {
            Map.Entry index = (Map.Entry) item;
            List found = new ArrayList();
            for (Object content : (List) index.getValue()) {
                IndexManifestEntry entry = (IndexManifestEntry) content;
                List one = new ArrayList();
                one.add(entry.indexFile().indexType());
                one.add(paths.indexFileFactory().toPath(entry.indexFile().fileName()).toString());
                one.add(entry.indexFile().fileSize());
                one.add(folders.partition(entry.partition()));
                found.add(one);
            }
            indexed.put(index.getKey(), found);
        }
        Map answer = new LinkedHashMap();
        answer.put("lists", listed);
        answer.put("entries", entries);
        answer.put("indexes", indexed);
        answer.put("folders", folders.folders);
        answer.put("partitions", folders.partitions);
        return JsonSerdeUtil.toFlatJson(answer);
    }

    private static Collection lines(String text) {
        return text.isEmpty() ? new ArrayList() : Arrays.asList(text.split("\n"));
    }

    private static FileStoreTable table(String location, Map options, Configuration hadoop) {
        Path root = new Path(location);
        FileIO files = open(root, options, hadoop);
        TableSchema schema = schema(files, root, "main");
        // The branch that a reader falls back to is a branch like the others, and may be gone.
        Map settings = new HashMap(schema.options());
        settings.remove("scan.fallback-branch");
        return FileStoreTableFactory.create(files, root, schema.copy(settings));
    }

    private static List entry(ManifestEntry entry, Folders folders) {
        DataFileMeta file = entry.file();
        List one = new ArrayList();
        one.add(entry.kind() == FileKind.ADD);
        one.add(folders.folder(entry.partition(), entry.bucket()));
        one.add(file.fileName());
        one.add(file.fileSize());
        one.add(file.rowCount());
        one.add(file.deleteRowCount().isPresent() ? file.deleteRowCount().get() : null);
        one.add(file.fileSource().isPresent() && file.fileSource().get() == FileSource.COMPACT);
        one.add(file.extraFiles());
        return one;
    }

    /** The folders and partitions that were met, each written once. */
    static class Folders {
        final List folders = new ArrayList();
        final List partitions = new ArrayList();
        private final Map folderIndex = new HashMap();
        private final Map partitionIndex = new HashMap();
        private final FileStorePathFactory paths;
        private final RowType type;
        private final InternalRow.FieldGetter[] getters;

        Folders(FileStorePathFactory paths, RowType type) {
            this.paths = paths;
            this.type = type;
            this.getters = type.fieldGetters();
        }

        Integer folder(BinaryRow partition, int bucket) {
            List key = new ArrayList();
            key.add(partition);
            key.add(bucket);
            Integer index = (Integer) folderIndex.get(key);
            if (index == null) {
                index = folders.size();
                folderIndex.put(key, index);
                List folder = new ArrayList();
                folder.add(paths.bucketPath(partition, bucket).toString());
                folder.add(partition(partition));
                folders.add(folder);
            }
            return index;
        }

        Integer partition(BinaryRow partition) {
            Integer index = (Integer) partitionIndex.get(partition);
            if (index == null) {
                index = partitions.size();
                partitionIndex.put(partition, index);
                List values = new ArrayList();
                for (int i = 0; i < getters.length; i++) {
                    values.add(text(getters[i].getFieldOrNull(partition), type.getTypeAt(i)));
                }
                partitions.add(values);
            }
            return index;
        }

        private static String text(Object value, DataType type) {
            CastExecutor cast = value == null ? null : CastExecutors.resolve(type, VarCharType.STRING_TYPE);
            return value == null ? null : String.valueOf(cast == null ? value : cast.cast(value));
        }
    }

    private static TableSchema schema(FileIO files, Path root, String branch) {
        TableSchema schema;
        try {
            schema = (TableSchema) new SchemaManager(files, root, branch).latest().orElse(null);
        } catch (Throwable error) {
            throw broken("the schema of branch " + branch, error);
        }
        if (schema == null) {
            throw new Broken("branch " + branch + " has no schema");
        }
        return schema;
    }

    /** Adds a branch whose snapshots leave a changelog when they expire, and whether that is read from data files. */
    private static void addDecoupled(Map decoupled, String branch, TableSchema schema) {
        CoreOptions settings = CoreOptions.fromMap(schema.options());
        if (settings.expireConfig().isChangelogDecoupled()) {
            decoupled.put(branch, settings.changelogProducer() == CoreOptions.ChangelogProducer.NONE);
        }
    }

    private static List columns(List found, String parent, List fields) {
        for (Object item : fields) {
            DataField field = (DataField) item;
            List one = new ArrayList();
            one.add(parent + field.name());
            one.add(field.type().copy(true).asSQLString());
            found.add(one);
            if (field.type() instanceof RowType) {
                columns(found, parent + field.name() + ".", ((RowType) field.type()).getFields());
            }
        }
        return found;
    }

    private static Map branch(FileIO files, Path root) {
        Map answer = new LinkedHashMap();
        for (String kind : new String[] {"snapshot", "tag", "changelog", "consumer"}) {
            Map found = new TreeMap();
            for (Object item : list(files, new Path(root, kind), kind + "-", false)) {
                Path path = (Path) item;
                found.put(path.getName().substring(kind.length() + 1), document(files, path, kind));
            }
            answer.put(kind, found);
        }
        return answer;
    }

    /** The text of a file that Paimon's own parser accepts. */
    private static String document(FileIO files, Path path, String kind) {
        try {
            String text = files.readFileUtf8(path);
            if (kind.equals("snapshot")) {
                Snapshot.fromJson(text);
            } else if (kind.equals("tag")) {
                Tag.fromJson(text);
            } else if (kind.equals("changelog")) {
                Changelog.fromJson(text);
            } else {
                Consumer.fromJson(text);
            }
            return text;
        } catch (Throwable error) {
            throw broken(path.toString(), error);
        }
    }

    /** The contents of many small files by name, several at once: a store answers slowly, a disk byte by byte. */
    private static Map readAll(FileStoreTable table, int kind, Collection names, Collection optional) {
        Map pending = new LinkedHashMap();
        Map found = new LinkedHashMap();
        ExecutorService pool = Executors.newFixedThreadPool(Math.max(1, Math.min(READERS, names.size())));
        try {
            for (Object name : names) {
                pending.put(name, pool.submit(new Reading(reader(table, kind), (String) name, optional.contains(name))));
            }
            for (Object item : pending.entrySet()) {
                Map.Entry entry = (Map.Entry) item;
                Object content = ((Future) entry.getValue()).get();
                if (content != null) {
                    found.put(entry.getKey(), content);
                }
            }
        } catch (ExecutionException error) {
            throw (Broken) error.getCause();
        } catch (InterruptedException error) {
            throw new Broken("reading was interrupted");
        } finally {
            pool.shutdownNow();
        }
        return found;
    }

    private static ObjectsFile reader(FileStoreTable table, int kind) {
        if (kind == LIST) {
            return table.store().manifestListFactory().create();
        } else if (kind == MANIFEST) {
            return table.store().manifestFileFactory().create();
        }
        return table.store().indexManifestFileFactory().create();
    }

    /** One file. Each has a reader of its own: Paimon's are not made for several threads. */
    static class Reading implements Callable {
        private final ObjectsFile reader;
        private final String name;
        private final boolean optional;

        Reading(ObjectsFile reader, String name, boolean optional) {
            this.reader = reader;
            this.name = name;
            this.optional = optional;
        }

        public Object call() {
            try {
                return optional && !reader.exists(name) ? null : reader.readWithIOException(name);
            } catch (Throwable error) {
                throw broken("manifest/" + name, error);
            }
        }
    }

    private static List list(FileIO files, Path folder, String prefix, boolean folders) {
        List found = new ArrayList();
        try {
            FileStatus[] all = files.exists(folder) ? files.listStatus(folder) : new FileStatus[0];
            for (FileStatus status : all) {
                if (status.isDir() == folders && status.getPath().getName().startsWith(prefix)) {
                    found.add(status.getPath());
                }
            }
        } catch (Throwable error) {
            throw broken(folder.toString(), error);
        }
        return found;
    }

    private static FileIO open(Path root, Map options, Configuration hadoop) {
        try {
            return new WholeFiles(FileIO.get(root, CatalogContext.create(Options.fromMap(options), hadoop)));
        } catch (Throwable error) {
            throw broken(root.toString(), error);
        }
    }

    static Broken broken(String what, Throwable error) {
        Throwable cause = error;
        while (cause.getCause() != null) {
            cause = cause.getCause();
        }
        String said = String.valueOf(cause.getMessage()).split("\n")[0];
        // Paimon guesses at causes of a missing file; the sentence before says what is known.
        int guess = said.indexOf(", Possible causes");
        return new Broken(what + " cannot be read: " + (guess < 0 ? said : said.substring(0, guess)));
    }

    /**
     * A store that can only be read, and never gives part of a file for the whole.
     *
     * <p>Avro takes a file that was cut inside its last block for one that ends before it: entries would be missing
     * without an error. Each file is fetched at once, because Avro looks for its beginning byte by byte.
     */
    public static class WholeFiles implements FileIO {
        private final FileIO store;

        public WholeFiles(FileIO store) {
            this.store = store;
        }

        public SeekableInputStream newInputStream(Path path) throws IOException {
            byte[] content = IOUtils.readFully(store.newInputStream(path), true);
            if (content.length > 3 && content[0] == 'O' && content[1] == 'b' && content[2] == 'j' && content[3] == 1) {
                DataFileReader reader =
                        new DataFileReader(new SeekableByteArrayInput(content), new GenericDatumReader());
                long end = reader.previousSync();
                while (reader.hasNext()) {
                    reader.nextBlock();
                    end = reader.tell();
                }
                if (end != content.length) {
                    throw new IOException("the file ends in the middle of a block");
                }
            }
            return new ByteArraySeekableStream(content);
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

        public PositionOutputStream newOutputStream(Path path, boolean overwrite) {
            throw new UnsupportedOperationException("reading only");
        }

        public boolean delete(Path path, boolean recursive) {
            throw new UnsupportedOperationException("reading only");
        }

        public boolean mkdirs(Path path) {
            throw new UnsupportedOperationException("reading only");
        }

        public boolean rename(Path from, Path to) {
            throw new UnsupportedOperationException("reading only");
        }
    }

    /** One sentence for people; the stack trace stays here. */
    public static class Broken extends RuntimeException {
        public Broken(String message) {
            super(message);
        }
    }
}
