/* A machine in trouble, to one program: its disk takes nothing below a folder, and its clocks leap as a test says.
   TROUBLE names a file: the errno of the disk and that of every connection (0 for none), and in seconds the leaps of all
   clocks and of the wall clock. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

struct trouble { int disk; int network; double leap; double wall; };
static const struct trouble calm = {0, 0, 0, 0};

#define REAL(type, name, ...) static type (*real)(__VA_ARGS__); if (!real) real = (type (*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

static const volatile struct trouble *now_is(void) {
    static const volatile struct trouble *seen;
    if (!seen) {
        const char *name = getenv("TROUBLE");
        REAL(int, "open64", const char *, int, ...);
        int file = name ? real(name, O_RDONLY | O_CLOEXEC) : -1;
        void *map = file < 0 ? MAP_FAILED : mmap(NULL, sizeof calm, PROT_READ, MAP_SHARED, file, 0);
        if (file >= 0) close(file);
        seen = map == MAP_FAILED ? &calm : map;
    }
    return seen;
}

static int below(const char *path) {
    const char *folder = getenv("TROUBLED");
    return folder && !strncmp(path, folder, strlen(folder));
}

/* The errno for a change of this file, 0 where the disk takes it. */
static int refused(int file) {
    int disk = now_is()->disk;
    char link[64], path[PATH_MAX];
    if (!disk) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return below(path) ? disk : 0;
}

static int refused_at(const char *path) {
    char whole[PATH_MAX];
    if (!now_is()->disk) return 0;
    if (path[0] == '/') return below(path) ? now_is()->disk : 0;
    if (!getcwd(whole, sizeof whole)) return 0;
    return below(whole) ? now_is()->disk : 0;
}

static int opened_so(const char *path, int flags) {
    int disk = now_is()->disk;
    if (disk == EROFS ? (flags & (O_WRONLY | O_RDWR | O_CREAT)) : disk && (flags & O_CREAT) && access(path, F_OK)) return refused_at(path);
    return 0;
}

#define OPEN(name) int name(const char *path, int flags, ...) { \
    va_list more; va_start(more, flags); mode_t mode = va_arg(more, mode_t); va_end(more); \
    REAL(int, #name, const char *, int, ...); \
    int failed = opened_so(path, flags); \
    if (failed) { errno = failed; return -1; } \
    return real(path, flags, mode); }
OPEN(open)
OPEN(open64)
#define OPENAT(name) int name(int folder, const char *path, int flags, ...) { \
    va_list more; va_start(more, flags); mode_t mode = va_arg(more, mode_t); va_end(more); \
    REAL(int, #name, int, const char *, int, ...); \
    int failed = opened_so(path, flags); \
    if (failed) { errno = failed; return -1; } \
    return real(folder, path, flags, mode); }
OPENAT(openat)
OPENAT(openat64)

#define OF_A_FILE(type, name, given, passed, ...) type name given { \
    REAL(type, #name, __VA_ARGS__); int failed = refused(file); \
    if (failed) { errno = failed; return -1; } return real passed; }
OF_A_FILE(ssize_t, write, (int file, const void *bytes, size_t size), (file, bytes, size), int, const void *, size_t)
OF_A_FILE(ssize_t, pwrite, (int file, const void *bytes, size_t size, off_t at), (file, bytes, size, at), int, const void *, size_t, off_t)
OF_A_FILE(ssize_t, pwrite64, (int file, const void *bytes, size_t size, off64_t at), (file, bytes, size, at), int, const void *, size_t, off64_t)
OF_A_FILE(int, ftruncate64, (int file, off64_t size), (file, size), int, off64_t)
OF_A_FILE(int, ftruncate, (int file, off_t size), (file, size), int, off_t)

#define OF_A_PATH(name, given, passed, ...) int name given { \
    REAL(int, #name, __VA_ARGS__); int failed = now_is()->disk == EROFS ? refused_at(path) : 0; \
    if (failed) { errno = failed; return -1; } return real passed; }
OF_A_PATH(unlink, (const char *path), (path), const char *)
OF_A_PATH(rename, (const char *path, const char *to), (path, to), const char *, const char *)
int mkdir(const char *path, mode_t mode) {
    REAL(int, "mkdir", const char *, mode_t);
    int failed = refused_at(path);
    if (failed) { errno = failed; return -1; }
    return real(path, mode);
}

static void moved(struct timespec *at, double seconds) {
    double whole = (double)(long)seconds;
    at->tv_sec += (time_t)whole;
    at->tv_nsec += (long)((seconds - whole) * 1e9);
    if (at->tv_nsec >= 1000000000L) { at->tv_nsec -= 1000000000L; at->tv_sec++; }
    if (at->tv_nsec < 0) { at->tv_nsec += 1000000000L; at->tv_sec--; }
}

int clock_gettime(clockid_t clock, struct timespec *at) {
    REAL(int, "clock_gettime", clockid_t, struct timespec *);
    int failed = real(clock, at);
    int wall = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
    if (!failed && (wall || clock == CLOCK_MONOTONIC || clock == CLOCK_BOOTTIME)) moved(at, now_is()->leap + (wall ? now_is()->wall : 0));
    return failed;
}
time_t time(time_t *out) { struct timespec at; clock_gettime(CLOCK_REALTIME, &at); if (out) *out = at.tv_sec; return at.tv_sec; }
int gettimeofday(struct timeval *restrict out, void *restrict zone) {
    struct timespec at; (void)zone; clock_gettime(CLOCK_REALTIME, &at); out->tv_sec = at.tv_sec; out->tv_usec = at.tv_nsec / 1000; return 0;
}

/* Who waits looks often, since a leap wakes nobody; and waits until an instant of the kernel's own clock. */
int epoll_wait(int file, struct epoll_event *events, int most, int timeout) {
    REAL(int, "epoll_wait", int, struct epoll_event *, int, int);
    return real(file, events, most, timeout < 0 || timeout > 20 ? 20 : timeout);
}
int sem_clockwait(sem_t *held, clockid_t clock, const struct timespec *until) {
    REAL(int, "sem_clockwait", sem_t *, clockid_t, const struct timespec *);
    struct timespec at = *until; moved(&at, -now_is()->leap); return real(held, clock, &at);
}
int clock_nanosleep(clockid_t clock, int flags, const struct timespec *until, struct timespec *left) {
    REAL(int, "clock_nanosleep", clockid_t, int, const struct timespec *, struct timespec *);
    struct timespec at = *until; if (flags & TIMER_ABSTIME) moved(&at, -now_is()->leap); return real(clock, flags, &at, left);
}

int connect(int file, const struct sockaddr *to, socklen_t length) {
    REAL(int, "connect", int, const struct sockaddr *, socklen_t);
    int failed = to->sa_family == AF_UNIX ? 0 : now_is()->network;
    if (failed) { errno = failed; return -1; }
    return real(file, to, length);
}
