/* SPDX-License-Identifier: MIT */
#include "src/survey/survey.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "src/inspect/known_files.h"
#include "src/inspect/lua_process.h"
#include "src/linux/clocks/clock.h"
#include "src/linux/clocks/cpu_clock.h"
#include "src/linux/proc/permission.h"

enum { MEASURE_NS = 200 * 1000 * 1000 };

static void describe_vm(const struct layout *layout, char text[static SURVEY_VM_MAX])
{
	snprintf(text, SURVEY_VM_MAX, "LuaJIT %s%s%s", layout->bytecode == BYTECODE_V20 ? "2.0" : "2.1",
		 layout->gc64 ? " GC64" : "", layout->has_jit ? "" : ", no JIT");
}

static void read_process(pid_t pid, struct known_files *files, struct finding *finding)
{
	struct namer_options options = { .native = NATIVE_FOLD };
	struct functions *functions = functions_new();
	struct lua_process *process = NULL;

	finding->error = functions ? lua_process_open(pid, functions, files, &options, &process) : -ENOMEM;
	if (!finding->error)
		finding->error = lua_process_refresh(process, false);
	if (!finding->error)
		finding->error = lua_process_lacks_luajit(process);
	if (!finding->error) {
		struct lua_module module = lua_process_module(process, 0);

		finding->runs_luajit = true;
		if (module.vm)
			describe_vm(&module.vm->layout, finding->vm);
	}
	lua_process_close(process);
	functions_free(functions);
}

/* Runs in a child of ljspy, which is to end with ljspy: the kernel drops that where the user changes. */
_Noreturn static void inspect_as_its_user(const struct process *process, struct known_files *files, int fd,
					  pid_t parent)
{
	struct finding finding = { .error = permission_take_target_identity(process) };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(EXIT_FAILURE);
	if (!finding.error)
		read_process(process->pid, files, &finding);
	_exit(write(fd, &finding, sizeof(finding)) != (ssize_t)sizeof(finding));
}

/*
 * Inspect one process. If ljspy is root without CAP_SYS_PTRACE, a child of ljspy
 * does it as the process's user.
 */
static void inspect(const struct process *process, struct known_files *files, struct finding *ret_finding)
{
	struct finding finding = { .error = 0 };
	const pid_t parent = getpid();
	int fds[2];
	pid_t child;

	if (!permission_would_take_identity(process) || pipe2(fds, O_CLOEXEC)) {
		read_process(process->pid, files, &finding);
		*ret_finding = finding;
		return;
	}
	child = fork();
	if (child == 0)
		inspect_as_its_user(process, files, fds[1], parent);
	close(fds[1]);
	if (child < 0 || read(fds[0], &finding, sizeof(finding)) != (ssize_t)sizeof(finding))
		finding = (struct finding){ .error = -EPERM };
	finding.vm[SURVEY_VM_MAX - 1] = '\0';
	close(fds[0]);
	if (child > 0)
		waitpid(child, NULL, 0);
	*ret_finding = finding;
}

/* Does the name suggest LuaJIT? This only chooses which refusal to explain. */
static bool is_likely(const struct process *process)
{
	static const char *const names[] = { "luajit", "nginx", "openresty", "kong", "apisix", "nvim" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strstr(process->name, names[i]))
			return true;
	return false;
}

static void note_refusal(struct survey *survey, const struct process *process, int error)
{
	survey->refused_count += error != -ENODATA;
	if (survey->refused_pid || !is_likely(process))
		return;
	survey->refused_pid = process->pid;
	survey->refused_error = -error;
}

int survey_take(struct process_list *list, struct survey *ret_survey)
{
	struct survey survey = { .list = { .processes = list->processes } };
	struct known_files *files = known_files_new();

	survey.findings = calloc(list->count + 1, sizeof(*survey.findings));
	if (!survey.findings || !files) {
		free(survey.findings);
		known_files_free(files);
		return -ENOMEM;
	}
	for (size_t i = 0; i < list->count; i++) {
		struct process *process = &list->processes[i];
		struct finding finding;

		inspect(process, files, &finding);
		if (finding.runs_luajit) {
			survey.findings[survey.list.count] = finding;
			survey.list.processes[survey.list.count++] = *process;
			continue;
		}
		if (finding.error && finding.error != -ESRCH && finding.error != -ENOEXEC)
			note_refusal(&survey, process, finding.error);
		process_clear(process);
	}
	known_files_free(files);
	free(list->unread);
	*list = (struct process_list){ .processes = NULL };
	*ret_survey = survey;
	return 0;
}

void survey_clear(struct survey *survey)
{
	process_list_clear(&survey->list);
	free(survey->findings);
	survey->findings = NULL;
}

static uint64_t cpu_ns(pid_t pid)
{
	struct cpu_clock clock;
	uint64_t ns;

	return cpu_clock_open(pid, &clock) == 0 && cpu_clock_now(&clock, &ns) == 0 ? ns : 0;
}

void survey_measure(const struct survey *survey, double *cpu)
{
	const struct timespec moment = { .tv_nsec = MEASURE_NS };
	const uint64_t begin_ns = clock_now_ns(CLOCK_MONOTONIC);
	double elapsed_ns;

	for (size_t i = 0; i < survey->list.count; i++)
		cpu[i] = (double)cpu_ns(survey->list.processes[i].pid);
	nanosleep(&moment, NULL);
	/* ljspy may have waited for a CPU, or been stopped. */
	elapsed_ns = (double)(clock_now_ns(CLOCK_MONOTONIC) - begin_ns);
	for (size_t i = 0; i < survey->list.count; i++) {
		double now = (double)cpu_ns(survey->list.processes[i].pid);

		cpu[i] = now > cpu[i] && elapsed_ns > 0 ? 100 * (now - cpu[i]) / elapsed_ns : 0;
	}
}
