// A library to preload that moves the wall clock of a program by the seconds in
// the file that DIBS_CLOCK names, as soon as they change. The monotonic clock is
// left alone.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t *offset;

__attribute__((constructor)) static void start(void) {
	const char *path = getenv("DIBS_CLOCK");
	int fd = path ? open(path, O_RDONLY) : -1;
	void *p = fd < 0 ? MAP_FAILED : mmap(NULL, 8, PROT_READ, MAP_SHARED, fd, 0);
	if (p != MAP_FAILED) offset = p;
}

static int64_t moved(void) { return offset ? *offset : 0; }

int clock_gettime(clockid_t id, struct timespec *t) {
	int r = syscall(SYS_clock_gettime, id, t);
	if (r == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) t->tv_sec += moved();
	return r;
}

int gettimeofday(struct timeval *restrict t, void *restrict zone) {
	struct timespec s;
	(void)zone;
	if (clock_gettime(CLOCK_REALTIME, &s)) return -1;
	t->tv_sec = s.tv_sec;
	t->tv_usec = s.tv_nsec / 1000;
	return 0;
}

time_t time(time_t *t) {
	struct timespec s;
	clock_gettime(CLOCK_REALTIME, &s);
	if (t) *t = s.tv_sec;
	return s.tv_sec;
}
