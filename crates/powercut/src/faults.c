/* Preloaded into a program under test: lets writes, syncs and truncates of the files of one folder fail.
 *
 * A file of rules is read before each of them, a rule a line: what ("write", "sync" or "truncate"), the file's name ("*" at its
 * end stands for anything), the error's number, and how often (0: always). Half of a write that fails comes to the disk where the
 * error is ENOSPC, as on a disk that becomes full in the middle of it.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FD_MAX = 4096, NAME_BYTES = 64, RULES_BYTES = 1024, RULES_MAX = 16 };

static char watched[FD_MAX][NAME_BYTES]; /* empty: not watched */
static const char *folder, *rules_path;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char rules[RULES_BYTES];
static int fired[RULES_MAX];

static int (*real_open)(const char *, int, ...);
static int (*real_openat)(int, const char *, int, ...);
static int (*real_close)(int);
static ssize_t (*real_read)(int, void *, size_t);
static ssize_t (*real_write)(int, const void *, size_t);
static ssize_t (*real_pwrite)(int, const void *, size_t, off64_t);
static int (*real_truncate)(int, off64_t);
static int (*real_fsync)(int), (*real_fdatasync)(int);

__attribute__((constructor)) static void prepare(void) {
    real_open = dlsym(RTLD_NEXT, "open64");
    real_openat = dlsym(RTLD_NEXT, "openat64");
    real_close = dlsym(RTLD_NEXT, "close");
    real_read = dlsym(RTLD_NEXT, "read");
    real_write = dlsym(RTLD_NEXT, "write");
    real_pwrite = dlsym(RTLD_NEXT, "pwrite64");
    real_truncate = dlsym(RTLD_NEXT, "ftruncate64");
    real_fsync = dlsym(RTLD_NEXT, "fsync");
    real_fdatasync = dlsym(RTLD_NEXT, "fdatasync");
    folder = getenv("FAULTS_FOLDER");
    rules_path = getenv("FAULTS_RULES");
}

static int opened(int fd, const char *path) {
    if (fd < 0 || fd >= FD_MAX || !folder) return fd;
    watched[fd][0] = 0;
    size_t length = strlen(folder);
    if (strncmp(path, folder, length) != 0 || path[length] != '/') return fd;
    const char *name = strrchr(path, '/') + 1;
    if (strlen(name) < NAME_BYTES) strcpy(watched[fd], name);
    return fd;
}

static int is_meant(const char *pattern, const char *name) {
    size_t length = strlen(pattern);
    if (length && pattern[length - 1] == '*') return strncmp(pattern, name, length - 1) == 0;
    return strcmp(pattern, name) == 0;
}

/* The error that this operation is to meet, or 0. */
static int due(const char *operation, int fd) {
    if (fd < 0 || fd >= FD_MAX || !watched[fd][0] || !rules_path) return 0;
    pthread_mutex_lock(&lock);
    char now[RULES_BYTES] = "";
    int file = real_open(rules_path, O_RDONLY | O_CLOEXEC);
    if (file >= 0) {
        ssize_t got = real_read(file, now, sizeof now - 1);
        now[got > 0 ? got : 0] = 0;
        real_close(file);
    }
    if (strcmp(now, rules) != 0) {
        strcpy(rules, now);
        memset(fired, 0, sizeof fired);
    }
    int error = 0, number = 0;
    for (char *line = now; *line && number < RULES_MAX && !error; number++) {
        char what[16], pattern[NAME_BYTES];
        int code, times;
        int found = sscanf(line, "%15s %63s %d %d", what, pattern, &code, &times);
        if (found == 4 && strcmp(what, operation) == 0 && is_meant(pattern, watched[fd]) &&
            (times == 0 || fired[number] < times)) {
            fired[number]++;
            error = code;
        }
        char *end = strchr(line, '\n');
        line = end ? end + 1 : line + strlen(line);
    }
    pthread_mutex_unlock(&lock);
    return error;
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
    int error = due("write", fd);
    if (!error) return real_pwrite(fd, bytes, length, offset);
    if (error == ENOSPC) {
        ssize_t ignored = real_pwrite(fd, bytes, length / 2 & ~(size_t)4095, offset);
        (void)ignored;
    }
    errno = error;
    return -1;
}
ssize_t pwrite(int fd, const void *bytes, size_t length, off_t offset) { return pwrite64(fd, bytes, length, offset); }

ssize_t write(int fd, const void *bytes, size_t length) {
    int error = due("write", fd);
    if (!error) return real_write(fd, bytes, length);
    errno = error;
    return -1;
}

int ftruncate64(int fd, off64_t size) {
    int error = due("truncate", fd);
    if (!error) return real_truncate(fd, size);
    errno = error;
    return -1;
}
int ftruncate(int fd, off_t size) { return ftruncate64(fd, size); }

int fsync(int fd) {
    int error = due("sync", fd);
    if (!error) return real_fsync(fd);
    errno = error;
    return -1;
}
int fdatasync(int fd) {
    int error = due("sync", fd);
    if (!error) return real_fdatasync(fd);
    errno = error;
    return -1;
}
