//go:build cgo && linux && (amd64 || arm64)

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

// Constants that older headers lack.
#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef SYS_landlock_restrict_self
#define SYS_landlock_restrict_self 446
#endif
#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC 4
#endif

// These constants equal the constants of order.go.
enum { executable = 3, ruleset = 4 };
enum { exit_not_contained = 214, exit_not_executable = 215 };

extern char **environ;

// fail ends the process.
static void fail(const char *step, const char *reason) {
	dprintf(STDERR_FILENO, "[ERROR] hykube provider-exec: %s: %s\n", step, reason);
	_exit(exit_not_contained);
}

// check ends the process if a system call returned an error.
static void check(const char *step, long result) {
	if (result < 0)
		fail(step, strerror(errno));
}

// next returns the first number of the order, and removes it.
static unsigned long long next(char **order, int base) {
	char *end;
	unsigned long long n = strtoull(*order, &end, base);
	if (end == *order || *end != ' ')
		fail("read order", "the sandbox settings are invalid");
	*order = end + 1;
	return n;
}

// kill_first makes the kernel kill a provider before the server if memory runs out.
static void kill_first(void) {
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	check("open oom_score_adj", fd);
	check("write oom_score_adj", write(fd, "900", 3));
	close(fd);
}

// limit sets a resource limit. It never raises an existing limit.
static void limit(int resource, rlim_t max) {
	char step[64];
	snprintf(step, sizeof step, "set resource limit %d", resource);
	struct rlimit l;
	check(step, getrlimit(resource, &l));
	if (l.rlim_max > max)
		l.rlim_max = max;
	l.rlim_cur = l.rlim_max;
	check(step, setrlimit(resource, &l));
}

// change_user changes the user and the group, and removes all other groups. User 0 keeps those of the server.
static void change_user(uid_t user) {
	// Without CAP_SETPCAP the bounding set remains, but no_new_privs makes it harmless.
	for (unsigned long c = 0; prctl(PR_CAPBSET_DROP, c) == 0; c++)
		;
	if (user == 0)
		return;
	check("drop groups", setgroups(0, NULL));
	check("change group", setresgid(user, user, user));
	check("change user", setresuid(user, user, user));
}

// drop_capabilities drops all capabilities, and prevents the process from gaining new ones.
static void drop_capabilities(void) {
	check("clear ambient capabilities", prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0));
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {0};
	check("drop capabilities", syscall(SYS_capset, &header, none));
	check("set no_new_privs", prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
}

// die_with_server makes the kernel kill this process when the server ends. It must follow change_user, because a change
// of the user clears this setting.
static void die_with_server(pid_t server) {
	check("set the signal for the end of the server", prctl(PR_SET_PDEATHSIG, SIGKILL));
	if (getppid() != server)
		fail("check parent", "the server has ended");
}

// execute replaces this process with the program of the descriptor executable. For a script it executes the path.
static void execute(char *path, int script) {
	// The server may have inherited open files at its own start.
	if (syscall(SYS_close_range, executable, ~0U, CLOSE_RANGE_CLOEXEC) < 0) { // Linux before 5.11
		fcntl(executable, F_SETFD, FD_CLOEXEC);
		fcntl(ruleset, F_SETFD, FD_CLOEXEC);
	}
	char *argv[] = {path, NULL};
	if (script)
		execve(path, argv, environ);
	else
		syscall(SYS_execveat, executable, "", argv, environ, AT_EMPTY_PATH);
	if (errno == ENOEXEC)
		_exit(exit_not_executable);
	check("execute the provider", -1);
}

// carry_out carries out an encoded order; see Order in order.go. It sets the filter last, because the filter refuses the
// system calls of the other steps.
static void carry_out(char *order) {
	static struct sock_filter filter[BPF_MAXINSNS];
	pid_t server = next(&order, 10);
	int script = next(&order, 10), enforce = next(&order, 10);
	uid_t user = next(&order, 10);
	int has_ruleset = next(&order, 10);
	size_t limits = next(&order, 10), instructions = next(&order, 10);
	if (instructions > BPF_MAXINSNS)
		fail("read order", "the filter of system calls is too long");
	if (enforce)
		kill_first();
	for (size_t i = 0; i < limits; i++) {
		int resource = next(&order, 10);
		rlim_t max = next(&order, 10);
		limit(resource, max);
	}
	for (size_t i = 0; i < instructions; i++) {
		unsigned long long word = next(&order, 36);
		filter[i] = (struct sock_filter){.code = word >> 48, .jt = word >> 40, .jf = word >> 32, .k = word};
	}
	if (*order == '\0')
		fail("read order", "it has no path");
	if (enforce) {
		change_user(user);
		drop_capabilities();
	}
	die_with_server(server);
	if (has_ruleset)
		check("enforce Landlock", syscall(SYS_landlock_restrict_self, ruleset, 0));
	if (instructions > 0) {
		struct sock_fprog program = {.len = instructions, .filter = filter};
		check("filter system calls", prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
	}
	execute(order, script);
}

// The constructor runs at each start of the program. It returns unless the arguments are those of a provider process.
// It reads them from /proc, because only some C libraries pass them to a constructor.
__attribute__((constructor)) static void entry(void) {
	static char line[1 << 16];
	int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	size_t length = 0;
	for (ssize_t n = 1; n > 0 && length < sizeof line - 1; length += n)
		if ((n = read(fd, line + length, sizeof line - 1 - length)) < 0)
			n = 0;
	close(fd);
	char *command = line + strlen(line) + 1;
	if (command >= line + length || strcmp(command, "provider-exec") != 0)
		return;
	char *order = command + strlen(command) + 1;
	if (order >= line + length || order + strlen(order) + 1 != line + length)
		return;
	carry_out(order);
}
