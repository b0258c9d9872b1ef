/* Preloaded into a program under test: writes down what it does to the files of one folder.
 *
 * Each record is a header (struct record), then the bytes that a write replaced, then the bytes it wrote. The journal is
 * written before the operation itself, and a sync after it, so a kill between the two never shows a sync that was not
 * done or hides a write that was. Shared-memory files (-shm) are rebuilt by SQLite and are left out, as are locks.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { WRITE = 1, TRUNCATE = 2, SYNC = 3, FD_MAX = 4096, NAME_BYTES = 64 };

struct record {
    uint64_t kind;
    char name[NAME_BYTES];
    uint64_t offset, length, before_length, size_before;
};

static char watched[FD_MAX][NAME_BYTES]; /* empty: not watched */
static const char *folder;
static int journal = -1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int (*real_open)(const char *, int, ...);
static int (*real_openat)(int, const char *, int, ...);
static int (*real_close)(int);
static ssize_t (*real_write)(int, const void *, size_t);
static ssize_t (*real_pwrite)(int, const void *, size_t, off64_t);
static int (*real_truncate)(int, off64_t);
static int (*real_fsync)(int), (*real_fdatasync)(int);
static long syncs_left = -1; /* the program dies before the sync that would make this 0 */

__attribute__((constructor)) static void prepare(void) {
    real_open = dlsym(RTLD_NEXT, "open64");
    real_openat = dlsym(RTLD_NEXT, "openat64");
    real_close = dlsym(RTLD_NEXT, "close");
    real_write = dlsym(RTLD_NEXT, "write");
    real_pwrite = dlsym(RTLD_NEXT, "pwrite64");
    real_truncate = dlsym(RTLD_NEXT, "ftruncate64");
    real_fsync = dlsym(RTLD_NEXT, "fsync");
    real_fdatasync = dlsym(RTLD_NEXT, "fdatasync");
    folder = getenv("POWERCUT_FOLDER");
    const char *path = getenv("POWERCUT_JOURNAL");
    const char *die_at = getenv("POWERCUT_DIE_AT_SYNC");
    if (die_at) syncs_left = atol(die_at);
    if (folder && path) journal = real_open(path, O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0644);
}

static int is_watched(int fd) { return journal >= 0 && fd >= 0 && fd < FD_MAX && watched[fd][0]; }

static int opened(int fd, const char *path) {
    if (fd < 0 || fd >= FD_MAX || journal < 0) return fd;
    watched[fd][0] = 0;
    size_t length = strlen(folder);
    if (strncmp(path, folder, length) != 0 || path[length] != '/') return fd;
    const char *name = strrchr(path, '/') + 1;
    if (strstr(name, "-shm") || strstr(name, ".lock") || strlen(name) >= NAME_BYTES) return fd;
    strcpy(watched[fd], name);
    return fd;
}

static void note(int kind, int fd, uint64_t offset, const void *bytes, size_t length) {
    struct stat64 info;
    if (fstat64(fd, &info) != 0) return;
    struct record header = {kind, "", offset, length, 0, (uint64_t)info.st_size};
    memcpy(header.name, watched[fd], NAME_BYTES);
    char *before = NULL;
    if (kind == WRITE && offset < header.size_before) {
        uint64_t reach = header.size_before - offset;
        header.before_length = length < reach ? length : reach;
        before = malloc(header.before_length);
        char path[32];
        /* The descriptor may be write-only: read through a second one. */
        int n = 0;
        const char prefix[] = "/proc/self/fd/";
        memcpy(path, prefix, sizeof prefix - 1);
        n = sizeof prefix - 1;
        char digits[12];
        int d = 0, number = fd;
        do digits[d++] = '0' + number % 10; while (number /= 10);
        while (d) path[n++] = digits[--d];
        path[n] = 0;
        int reader = real_open(path, O_RDONLY | O_CLOEXEC);
        ssize_t got = reader >= 0 ? pread64(reader, before, header.before_length, offset) : 0;
        if (reader >= 0) real_close(reader);
        header.before_length = got > 0 ? (uint64_t)got : 0;
    }
    struct iovec parts[3] = {
        {&header, sizeof header}, {before, header.before_length}, {(void *)bytes, kind == WRITE ? length : 0}};
    ssize_t ignored = writev(journal, parts, 3);
    (void)ignored;
    free(before);
}

#define MODE_OF(flags)                    \
    int mode = 0;                         \
    if ((flags) & (O_CREAT | O_TMPFILE)) { \
        va_list list;                     \
        va_start(list, flags);            \
        mode = va_arg(list, int);         \
        va_end(list);                     \
    }

int open(const char *path, int flags, ...) { MODE_OF(flags) return opened(real_open(path, flags | O_LARGEFILE, mode), path); }
int open64(const char *path, int flags, ...) { MODE_OF(flags) return opened(real_open(path, flags, mode), path); }
int openat(int at, const char *path, int flags, ...) { MODE_OF(flags) return opened(real_openat(at, path, flags | O_LARGEFILE, mode), path); }
int openat64(int at, const char *path, int flags, ...) { MODE_OF(flags) return opened(real_openat(at, path, flags, mode), path); }

int close(int fd) {
    if (fd >= 0 && fd < FD_MAX) watched[fd][0] = 0;
    return real_close(fd);
}

ssize_t pwrite64(int fd, const void *bytes, size_t length, off64_t offset) {
    if (!is_watched(fd)) return real_pwrite(fd, bytes, length, offset);
    pthread_mutex_lock(&lock);
    note(WRITE, fd, offset, bytes, length);
    ssize_t done = real_pwrite(fd, bytes, length, offset);
    pthread_mutex_unlock(&lock);
    return done;
}
ssize_t pwrite(int fd, const void *bytes, size_t length, off_t offset) { return pwrite64(fd, bytes, length, offset); }

ssize_t write(int fd, const void *bytes, size_t length) {
    if (!is_watched(fd)) return real_write(fd, bytes, length);
    pthread_mutex_lock(&lock);
    off64_t offset = lseek64(fd, 0, SEEK_CUR);
    note(WRITE, fd, offset, bytes, length);
    ssize_t done = real_write(fd, bytes, length);
    pthread_mutex_unlock(&lock);
    return done;
}

int ftruncate64(int fd, off64_t size) {
    if (!is_watched(fd)) return real_truncate(fd, size);
    pthread_mutex_lock(&lock);
    note(TRUNCATE, fd, size, NULL, 0);
    int done = real_truncate(fd, size);
    pthread_mutex_unlock(&lock);
    return done;
}
int ftruncate(int fd, off_t size) { return ftruncate64(fd, size); }

/* A cut at a moment when something waits to be synced. A kill from outside seldom finds one on a fast disk. */
static void die_if_due(int fd) {
    if (syncs_left < 0 || !is_watched(fd)) return;
    pthread_mutex_lock(&lock);
    if (--syncs_left <= 0) kill(getpid(), SIGKILL);
    pthread_mutex_unlock(&lock);
}

static int synced(int fd, int done) {
    if (done == 0 && is_watched(fd)) {
        pthread_mutex_lock(&lock);
        note(SYNC, fd, 0, NULL, 0);
        pthread_mutex_unlock(&lock);
    }
    return done;
}
int fsync(int fd) {
    die_if_due(fd);
    return synced(fd, real_fsync(fd));
}
int fdatasync(int fd) {
    die_if_due(fd);
    return synced(fd, real_fdatasync(fd));
}
