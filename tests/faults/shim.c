/* A filesystem that fails on request, laid under any process by LD_PRELOAD.
 *
 * Nothing happens until `fault_arm` is called. From then on every call of a chosen kind that
 * touches a path below one folder is counted, and the k-th is refused with an errno, cut short,
 * or never returns because the process is killed. Arrow, FAISS, polars and safetensors write from
 * C++ and Rust, past Python's os module: the C library is where all of them meet.
 *
 * The tally lies in memory that the caller shares, so that it outlives a killed process.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* The order of CALLS in shim.py. */
enum { OPEN, WRITE, FSYNC, RENAME, TRUNCATE, MKDIR, REMOVE, CLOSE, READ, FLOCK, KINDS };
/* The order of ACTIONS in shim.py. */
enum { COUNT, FAIL, STICK, SHORT, TORN, KILL, KILL_TORN };

struct tally {
    atomic_long matched;       /* calls of the chosen kinds below the folder */
    atomic_long hit;           /* 0 until the k-th came */
    atomic_long kind[KINDS];   /* calls of each kind below the folder, chosen or not */
    char path[512];            /* of the k-th */
};

static struct tally *tally;
static char root[PATH_MAX];
static size_t root_length;
static unsigned chosen;
static long wanted;
static int action, number;

static int record = -1; /* a descriptor that gets a line for each call below the folder */
static const char *const names[] = {"open",  "write",  "fsync", "rename", "truncate",
                                    "mkdir", "remove", "close", "read",   "flock"};

/* Refuse nothing and write down everything: who comes later can tell what was synced when. */
void record_arm(const char *folder, int descriptor)
{
    static struct tally unread;
    strncpy(root, folder, sizeof root - 1);
    root_length = strlen(root);
    record = descriptor, tally = &unread;
}

static void note(const char *kind, const char *path, const char *to)
{
    char line[3 * PATH_MAX];
    int length = snprintf(line, sizeof line, "%s\t%s\t%s\n", kind, path, to);
    syscall(SYS_write, record, line, length);
}

void fault_arm(struct tally *shared, const char *folder, unsigned kinds, long k, int what, int error)
{
    strncpy(root, folder, sizeof root - 1);
    root_length = strlen(root);
    chosen = kinds, wanted = k, action = what, number = error;
    tally = shared;
}

static int below(const char *path)
{
    return strncmp(path, root, root_length) == 0 &&
           (path[root_length] == '/' || path[root_length] == '\0');
}

static int absolute(int folder, const char *path, char *out)
{
    char link[64], base[PATH_MAX];
    ssize_t n;
    if (path[0] == '/') {
        strncpy(out, path, PATH_MAX - 1), out[PATH_MAX - 1] = '\0';
        return 1;
    }
    if (folder == AT_FDCWD)
        strcpy(link, "/proc/self/cwd");
    else
        snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
    n = readlink(link, base, sizeof base - 1);
    if (n < 0)
        return 0;
    base[n] = '\0';
    return snprintf(out, PATH_MAX, "%s/%s", base, path) < PATH_MAX;
}

/* What is to happen to this call: COUNT lets it pass. */
static int judge(int kind, const char *path)
{
    if (!below(path))
        return COUNT;
    atomic_fetch_add(&tally->kind[kind], 1);
    if (record >= 0 && kind != RENAME)
        note(names[kind], path, "");
    if (!(chosen & 1u << kind))
        return COUNT;
    long mine = atomic_fetch_add(&tally->matched, 1) + 1;
    int sticks = action == STICK || action == TORN;
    if (action == COUNT || mine < wanted || (mine > wanted && !sticks))
        return COUNT;
    if (mine == wanted) {
        strncpy(tally->path, path, sizeof tally->path - 1);
        atomic_store(&tally->hit, kind + 1);
    } else if (action == TORN)
        return FAIL;
    return action;
}

static int judge_path(int kind, int folder, const char *path)
{
    char whole[PATH_MAX];
    int kept = errno, found = COUNT;
    if (tally && path && absolute(folder, path, whole))
        found = judge(kind, whole);
    errno = kept;
    return found;
}

static int judge_fd(int kind, int fd)
{
    char link[64], path[PATH_MAX];
    int kept = errno, found = COUNT;
    if (tally) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        ssize_t n = readlink(link, path, sizeof path - 1);
        if (n > 0) {
            path[n] = '\0';
            found = judge(kind, path);
        }
    }
    errno = kept;
    return found;
}

static void note_rename(int from_folder, const char *from, int to_folder, const char *to)
{
    char one[PATH_MAX], other[PATH_MAX];
    int kept = errno;
    if (record >= 0 && absolute(from_folder, from, one) && absolute(to_folder, to, other) &&
        below(other))
        note("rename", one, other);
    errno = kept;
}

static void die(void)
{
    syscall(SYS_kill, syscall(SYS_getpid), SIGKILL);
    for (;;)
        pause();
}

/* Of calls that write nothing: everything but COUNT refuses them. */
static int refused(int what)
{
    if (what == COUNT || what == SHORT)
        return 0;
    if (what == KILL || what == KILL_TORN)
        die();
    errno = number;
    return 1;
}

#define REAL(name) \
    static __typeof__(&name) real; \
    if (!real) \
        real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

#define MODE \
    mode_t mode = 0; \
    if (flags & (O_CREAT | __O_TMPFILE)) { \
        va_list rest; \
        va_start(rest, flags); \
        mode = va_arg(rest, mode_t); \
        va_end(rest); \
    }
#define FOR_WRITING (flags & (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC))

#define OPENING(name) \
    int name(const char *path, int flags, ...) \
    { \
        REAL(name); \
        MODE \
        if (FOR_WRITING && refused(judge_path(OPEN, AT_FDCWD, path))) \
            return -1; \
        return real(path, flags, mode); \
    }
OPENING(open)
OPENING(open64)

#define OPENING_AT(name) \
    int name(int folder, const char *path, int flags, ...) \
    { \
        REAL(name); \
        MODE \
        if (FOR_WRITING && refused(judge_path(OPEN, folder, path))) \
            return -1; \
        return real(folder, path, flags, mode); \
    }
OPENING_AT(openat)
OPENING_AT(openat64)

/* The C library's own streams do not pass through `write` above: FAISS uses them. */
#define STREAM(name) \
    FILE *name(const char *path, const char *mode) \
    { \
        REAL(name); \
        if (strpbrk(mode, "wa+") && refused(judge_path(OPEN, AT_FDCWD, path))) \
            return NULL; \
        return real(path, mode); \
    }
STREAM(fopen)
STREAM(fopen64)

size_t fwrite(const void *data, size_t size, size_t count, FILE *file)
{
    REAL(fwrite);
    int what = tally ? judge_fd(WRITE, fileno(file)) : COUNT;
    /* A stream goes on after a short write by itself: that is no short write to its user. */
    if (what == COUNT || what == SHORT)
        return real(data, size, count, file);
    if (what == TORN || what == KILL_TORN) {
        size_t half = size * count / 2 ? size * count / 2 : size * count;
        size_t done = real(data, 1, half, file);
        if (what == KILL_TORN) {
            fflush(file);
            die();
        }
        if (what == TORN)
            errno = number;
        return done / (size ? size : 1);
    }
    refused(what);
    return 0;
}

int fclose(FILE *file)
{
    REAL(fclose);
    int what = tally ? judge_fd(CLOSE, fileno(file)) : COUNT;
    if (what == KILL || what == KILL_TORN)
        die();
    int done = real(file);
    if (refused(what))
        return EOF;
    return done;
}

/* A write: whole, refused, or the first half and then the trouble. */
#define WRITING(call_whole, call_half, length, fd) \
    int what = judge_fd(WRITE, fd); \
    if (what == COUNT) \
        return call_whole; \
    if ((what == SHORT || what == TORN || what == KILL_TORN) && (length) > 1) { \
        ssize_t done = call_half; \
        if (what == KILL_TORN) \
            die(); \
        return done; \
    } \
    if (refused(what)) \
        return -1; \
    return call_whole;

ssize_t write(int fd, const void *data, size_t length)
{
    REAL(write);
    WRITING(real(fd, data, length), real(fd, data, length / 2), length, fd)
}

#define PWRITE(name, type) \
    ssize_t name(int fd, const void *data, size_t length, type at) \
    { \
        REAL(name); \
        WRITING(real(fd, data, length, at), real(fd, data, length / 2, at), length, fd) \
    }
PWRITE(pwrite, off_t)
PWRITE(pwrite64, off64_t)

ssize_t writev(int fd, const struct iovec *parts, int count)
{
    REAL(writev);
    WRITING(real(fd, parts, count), real(fd, parts, count / 2), count, fd)
}

/* A copy inside the kernel reads and writes in one call: both sides are judged. shutil copies so. */
#define COPYING(call_whole, call_half, length, from, to) \
    int seen = judge_fd(READ, from); \
    if (seen == SHORT && (length) > 1) \
        return call_half; \
    if (refused(seen)) \
        return -1; \
    WRITING(call_whole, call_half, length, to)

#define SENDFILE(name, type) \
    ssize_t name(int to, int from, type *at, size_t length) \
    { \
        REAL(name); \
        COPYING(real(to, from, at, length), real(to, from, at, length / 2), length, from, to) \
    }
SENDFILE(sendfile, off_t)
SENDFILE(sendfile64, off64_t)

ssize_t copy_file_range(int from, off64_t *at, int to, off64_t *there, size_t length, unsigned flags)
{
    REAL(copy_file_range);
    COPYING(real(from, at, to, there, length, flags),
            real(from, at, to, there, length / 2, flags), length, from, to)
}

#define ON_FD(kind, name) \
    int name(int fd) \
    { \
        REAL(name); \
        if (refused(judge_fd(kind, fd))) \
            return -1; \
        return real(fd); \
    }
ON_FD(FSYNC, fsync)
ON_FD(FSYNC, fdatasync)

int close(int fd)
{
    REAL(close);
    int flags = tally ? fcntl(fd, F_GETFL) : -1;
    int what = flags >= 0 && (flags & O_ACCMODE) != O_RDONLY ? judge_fd(CLOSE, fd) : COUNT;
    if (what == KILL || what == KILL_TORN)
        die();
    int done = real(fd); /* as on Linux: the descriptor is gone even where close complains */
    return refused(what) ? -1 : done;
}

int flock(int fd, int operation)
{
    REAL(flock);
    if (refused(judge_fd(FLOCK, fd)))
        return -1;
    return real(fd, operation);
}

#define TRUNCATING(name, type) \
    int name(int fd, type length) \
    { \
        REAL(name); \
        if (refused(judge_fd(TRUNCATE, fd))) \
            return -1; \
        return real(fd, length); \
    }
TRUNCATING(ftruncate, off_t)
TRUNCATING(ftruncate64, off64_t)

int truncate(const char *path, off_t length)
{
    REAL(truncate);
    if (refused(judge_path(TRUNCATE, AT_FDCWD, path)))
        return -1;
    return real(path, length);
}

int truncate64(const char *path, off64_t length)
{
    REAL(truncate64);
    if (refused(judge_path(TRUNCATE, AT_FDCWD, path)))
        return -1;
    return real(path, length);
}

int rename(const char *from, const char *to)
{
    REAL(rename);
    note_rename(AT_FDCWD, from, AT_FDCWD, to);
    if (refused(judge_path(RENAME, AT_FDCWD, to)))
        return -1;
    return real(from, to);
}

int renameat(int from_folder, const char *from, int to_folder, const char *to)
{
    REAL(renameat);
    note_rename(from_folder, from, to_folder, to);
    if (refused(judge_path(RENAME, to_folder, to)))
        return -1;
    return real(from_folder, from, to_folder, to);
}

int renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned flags)
{
    REAL(renameat2);
    note_rename(from_folder, from, to_folder, to);
    if (refused(judge_path(RENAME, to_folder, to)))
        return -1;
    return real(from_folder, from, to_folder, to, flags);
}

int mkdir(const char *path, mode_t mode)
{
    REAL(mkdir);
    if (refused(judge_path(MKDIR, AT_FDCWD, path)))
        return -1;
    return real(path, mode);
}

int mkdirat(int folder, const char *path, mode_t mode)
{
    REAL(mkdirat);
    if (refused(judge_path(MKDIR, folder, path)))
        return -1;
    return real(folder, path, mode);
}

#define REMOVING(name) \
    int name(const char *path) \
    { \
        REAL(name); \
        if (refused(judge_path(REMOVE, AT_FDCWD, path))) \
            return -1; \
        return real(path); \
    }
REMOVING(unlink)
REMOVING(rmdir)

int unlinkat(int folder, const char *path, int flags)
{
    REAL(unlinkat);
    if (refused(judge_path(REMOVE, folder, path)))
        return -1;
    return real(folder, path, flags);
}

ssize_t read(int fd, void *data, size_t length)
{
    REAL(read);
    int what = judge_fd(READ, fd);
    if (what == SHORT && length > 1)
        return real(fd, data, length / 2);
    if (refused(what))
        return -1;
    return real(fd, data, length);
}

#define PREAD(name, type) \
    ssize_t name(int fd, void *data, size_t length, type at) \
    { \
        REAL(name); \
        int what = judge_fd(READ, fd); \
        if (what == SHORT && length > 1) \
            return real(fd, data, length / 2, at); \
        if (refused(what)) \
            return -1; \
        return real(fd, data, length, at); \
    }
PREAD(pread, off_t)
PREAD(pread64, off64_t)
