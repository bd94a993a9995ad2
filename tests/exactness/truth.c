/* SPDX-License-Identifier: MIT */
#include "tests/exactness/truth.h"

#include <stdlib.h>
#include <string.h>

#include "output/sample/lost.h"

enum {
	EVENTS_MAX = 1 << 16,
	STACKS_MAX = 1 << 14,
	LINES_MAX = 1024,
	LINE_MAX_BYTES = 64 * 1024,
	CATCH_UP_EVENTS = 60, /* how far ahead is looked after something wrong or lost */
};

/* Where between two events a stack stands. */
enum {
	RANK_NONE = -1,
	RANK_FIRST = 0,        /* the first event's stack */
	RANK_BUILTIN = 1,      /* a builtin on top of it */
	RANK_FIRST_AGAIN = 2,  /* back from a builtin */
	RANK_LEAVING = 3,      /* frames of the first are gone; and more than that for each */
	RANK_ENTERING = 10000, /* frames of the second are there */
	RANK_NEXT = 20000,     /* the second event's stack */
};

struct event {
	int position;
	const struct stack_text *stack;
};

struct truth {
	struct stack_text *stacks[STACKS_MAX];
	size_t stack_count;
	struct event events[EVENTS_MAX];
	size_t event_count;
	const struct stack_text *calls[STACKS_MAX]; /* each with a builtin on top that has just been called */
	size_t call_count;
	char *lines[LINES_MAX]; /* of the program, from 1 */
	char program[64];       /* "calls.lua:" */
	size_t at;              /* truth_follow(): the last event seen */
	int rank;
	char builtin[64];
	bool started;
	bool astray; /* the last stack told nothing about the place in time */
};

/*---- Stacks as text ----*/

static bool add_frame(struct stack_text *stack, size_t *used, const char *text)
{
	size_t length = strlen(text) + 1;

	if (stack->count == STACK_FRAMES_MAX || *used + length > sizeof(stack->text))
		return false;
	memcpy(stack->text + *used, text, length);
	stack->frames[stack->count++] = stack->text + *used;
	*used += length;
	return true;
}

/* Library and closure: "string.gsub" is gsub, "coroutine.wrap_aux" is wrap. */
static void builtin_text(char *text, size_t size, const char *name)
{
	const char *dot = strrchr(name, '.');
	size_t length;

	snprintf(text, size, "[%s", dot ? dot + 1 : name);
	length = strlen(text);
	if (length > 4 && strcmp(text + length - 4, "_aux") == 0)
		text[length - 4] = '\0';
	strncat(text, "]", size - strlen(text) - 1);
}

bool stack_text_fill(struct stack_text *stack, const struct frame *frames, size_t count)
{
	size_t used = 0;

	stack->count = 0;
	stack->compiled = false;
	stack->lost = NULL;
	stack->unknown_lines = 0;
	for (size_t i = count; i-- > 0;) {
		const struct function *function = frames[i].function;
		char text[512];

		stack->compiled |= frames[i].compiled;
		if (function->kind == FRAME_LUA) {
			bool is_unknown = frames[i].certainty == CERTAINTY_FUNCTION;

			/* Where the line is not known, it does not claim to: that is counted. */
			stack->unknown_lines += is_unknown;
			snprintf(text, sizeof(text), is_unknown ? "%s:%u:?" : "%s:%u:%u",
				 function->file + (function->file[0] == '@'), function->firstline,
				 frames[i].line);
		} else if (function->kind == FRAME_LOST) {
			if (!stack->lost)
				stack->lost_at = stack->count;
			stack->lost = function->name;
			snprintf(text, sizeof(text), "[lost: %s]", function->name);
		} else {
			builtin_text(text, sizeof(text), function->name);
		}
		if (!add_frame(stack, &used, text))
			return false;
	}
	return true;
}

void stack_text_print(FILE *file, const struct stack_text *stack)
{
	for (size_t i = 0; i < stack->count; i++)
		fprintf(file, "%s%s", i ? ";" : "", stack->frames[i]);
	fprintf(file, "\n");
}

/*---- Reading ----*/

static struct stack_text *parse_stack(char *line)
{
	struct stack_text *stack = calloc(1, sizeof(*stack));
	size_t used = 0;
	char *rest = line;

	for (char *frame; stack && (frame = strsep(&rest, ";"));) {
		if (!add_frame(stack, &used, frame)) {
			free(stack);
			return NULL;
		}
	}
	return stack;
}

/* False if it has too many lines. */
static bool read_program(struct truth *truth, const char *program)
{
	char path[256], line[1024];
	bool is_cut;
	FILE *file;

	snprintf(truth->program, sizeof(truth->program), "%s.lua:", program);
	snprintf(path, sizeof(path), "programs/%s.lua", program);
	file = fopen(path, "r");
	if (!file)
		return true;
	for (size_t i = 1; i < LINES_MAX && fgets(line, sizeof(line), file); i++)
		truth->lines[i] = strdup(line);
	is_cut = fgets(line, sizeof(line), file) != NULL;
	fclose(file);
	return !is_cut;
}

static bool read_line(struct truth *truth, char *line, uint64_t *ret_table)
{
	size_t stack;
	int position;

	line[strcspn(line, "\n")] = '\0';
	if (strncmp(line, "stack ", 6) == 0 && truth->stack_count < STACKS_MAX)
		truth->stacks[truth->stack_count++] = parse_stack(line + 6);
	else if (sscanf(line, "event %d %zu", &position, &stack) == 2 && truth->event_count < EVENTS_MAX &&
		 stack >= 1 && stack <= truth->stack_count)
		truth->events[truth->event_count++] = (struct event){ .position = position,
								      .stack = truth->stacks[stack - 1] };
	else if (sscanf(line, "call %zu", &stack) == 1 && truth->call_count < STACKS_MAX && stack >= 1 &&
		 stack <= truth->stack_count)
		truth->calls[truth->call_count++] = truth->stacks[stack - 1];
	else
		return sscanf(line, "ready %lx", ret_table) != 1;
	return true;
}

/* What is left out would be judged by the wrong events. */
static bool is_full(const struct truth *truth, const char *line)
{
	return (truth->stack_count == STACKS_MAX && strncmp(line, "stack ", 6) == 0) ||
	       (truth->event_count == EVENTS_MAX && strncmp(line, "event ", 6) == 0);
}

struct truth *truth_read(FILE *log, const char *program, uint64_t *ret_table)
{
	struct truth *truth = calloc(1, sizeof(*truth));
	char *line = malloc(LINE_MAX_BYTES);
	bool is_cut = false;

	*ret_table = 0;
	if (truth && line) {
		is_cut = !read_program(truth, program);
		while (!is_cut && fgets(line, LINE_MAX_BYTES, log) && !(is_cut = is_full(truth, line)) &&
		       read_line(truth, line, ret_table))
			;
	}
	if (is_cut)
		fprintf(stderr, "%s has more than %d lines, %d events or %d stacks: make it shorter\n",
			program, LINES_MAX - 1, EVENTS_MAX, STACKS_MAX);
	/* A round ends with position 2; what ends the program is not judged. */
	while (truth && truth->event_count && truth->events[truth->event_count - 1].position == 2)
		truth->event_count--;
	free(line);
	if (*ret_table)
		return truth;
	truth_free(truth);
	return NULL;
}

void truth_free(struct truth *truth)
{
	if (!truth)
		return;
	for (size_t i = 0; i < truth->stack_count; i++)
		free(truth->stacks[i]);
	for (size_t i = 0; i < LINES_MAX; i++)
		free(truth->lines[i]);
	free(truth);
}

/*---- Comparing ----*/

static bool is_builtin(const char *frame)
{
	return frame[0] == '[';
}

static bool same_frame(const char *truth, const char *said)
{
	const char *line;

	if (strcmp(truth, "[?]") == 0)
		return is_builtin(said) && strncmp(said, "[lost", 5) != 0;
	line = strrchr(said, ':');
	if (line && strcmp(line, ":?") == 0)
		return strncmp(truth, said, (size_t)(line - said) + 1) == 0;
	return strcmp(truth, said) == 0;
}

/* The same function, whatever the line. */
static bool same_function(const char *truth, const char *said)
{
	const char *line = strrchr(truth, ':');

	if (is_builtin(truth) || !line)
		return same_frame(truth, said);
	return strncmp(truth, said, (size_t)(line - truth) + 1) == 0;
}

static bool begins_with(const struct stack_text *truth, const struct stack_text *said, size_t count)
{
	if (truth->count < count || said->count < count)
		return false;
	for (size_t i = 0; i < count; i++)
		if (!same_frame(truth->frames[i], said->frames[i]))
			return false;
	return true;
}

static bool equals(const struct stack_text *truth, const struct stack_text *said)
{
	return truth->count == said->count && begins_with(truth, said, said->count);
}

/* Is it where a function is entered, its line that of the definition? */
static bool is_at_definition(const char *frame)
{
	const char *line = strrchr(frame, ':'), *first;

	if (!line)
		return false;
	for (first = line; first > frame && first[-1] != ':'; first--)
		;
	return strncmp(first, line + 1, (size_t)(line - first)) == 0 &&
	       strlen(line + 1) == (size_t)(line - first);
}

/* Is the leaf a function at its first line, the rest as in the truth? */
static bool has_just_entered(const struct stack_text *truth, const struct stack_text *said)
{
	size_t last = said->count - 1;

	return said->count && truth->count == said->count && begins_with(truth, said, last) &&
	       same_function(truth->frames[last], said->frames[last]) && is_at_definition(said->frames[last]);
}

/* Frames that stay from one event to the next; a caller may be at another line. */
static size_t common_depth(const struct stack_text *first, const struct stack_text *next)
{
	size_t depth = 0;

	while (depth < first->count && depth < next->count &&
	       strcmp(first->frames[depth], next->frames[depth]) == 0)
		depth++;
	if (depth == first->count || depth == next->count)
		return depth;
	/* C code calls again: the two calls are told apart by nothing. */
	if (depth && is_builtin(first->frames[depth - 1]))
		return depth;
	if (same_function(first->frames[depth], next->frames[depth]))
		return depth + 1;
	/* A tail call: the frame is replaced, its caller never runs. */
	if (depth + 1 == first->count && depth + 1 == next->count)
		return depth + 1;
	return depth;
}

/* Does the line on which the frame stands mention this word? */
static bool line_mentions(const struct truth *truth, const char *frame, const char *word)
{
	const char *line = strrchr(frame, ':');
	unsigned long number;

	if (!line || strncmp(frame, truth->program, strlen(truth->program)) != 0)
		return false;
	number = strtoul(line + 1, NULL, 10);
	return number < LINES_MAX && truth->lines[number] && strstr(truth->lines[number], word);
}

/*
 * Is this a stack on whose top a builtin has been called? Of the first count frames. A loop calls next()
 * where it has none of the bytecodes that do its work; which it has differs from run to run.
 */
static bool is_call(const struct truth *truth, const struct stack_text *said, size_t count)
{
	if (count > 1 && strcmp(said->frames[count - 1], "[next]") == 0 &&
	    (line_mentions(truth, said->frames[count - 2], "pairs") ||
	     line_mentions(truth, said->frames[count - 2], "next")))
		return true;
	for (size_t i = 0; i < truth->call_count; i++)
		if (truth->calls[i]->count == count && begins_with(truth->calls[i], said, count))
			return true;
	return false;
}

/* Of the first count frames. */
static bool has_builtins_on_top(const struct truth *truth, const struct stack_text *first,
				const struct stack_text *said, size_t count)
{
	return count > first->count && begins_with(first, said, first->count) && is_call(truth, said, count);
}

/* A builtin in the place of the leaf that called it last. */
static bool has_tail_called_builtin(const struct truth *truth, const struct stack_text *first,
				    const struct stack_text *said)
{
	return said->count && said->count == first->count && begins_with(first, said, said->count - 1) &&
	       is_call(truth, said, said->count);
}

/* A coroutine goes on at the call in which it had yielded. */
static bool is_back_from_yield(const struct truth *truth, const struct stack_text *next,
			       const struct stack_text *said)
{
	size_t leaf = said->count ? said->count - 1 : 0;

	if (leaf && strcmp(said->frames[leaf], "[yield]") == 0)
		leaf--;
	return leaf && leaf + 1 == next->count && begins_with(next, said, leaf) &&
	       same_function(next->frames[leaf], said->frames[leaf]) &&
	       line_mentions(truth, said->frames[leaf], "yield");
}

static int rank_between(const struct truth *truth, const struct stack_text *first,
			const struct stack_text *next, const struct stack_text *said)
{
	size_t depth = common_depth(first, next);

	if (equals(first, said))
		return RANK_FIRST;
	if (equals(next, said))
		return RANK_NEXT;
	if (has_builtins_on_top(truth, first, said, said->count))
		return RANK_BUILTIN;
	if (has_tail_called_builtin(truth, first, said))
		return RANK_LEAVING;
	if (said->count >= depth && said->count < first->count && begins_with(first, said, said->count))
		return RANK_LEAVING + (int)(first->count - said->count);
	if (said->count >= depth && said->count < next->count && begins_with(next, said, said->count))
		return RANK_ENTERING + (int)said->count;
	if (has_just_entered(next, said) && next->count > depth)
		return RANK_ENTERING + (int)said->count;
	if (is_back_from_yield(truth, next, said))
		return RANK_ENTERING + (int)next->count;
	/* Entered again by C code, or a tail call to itself. */
	if (has_just_entered(next, said))
		return RANK_ENTERING + (int)said->count;
	return RANK_NONE;
}

/*---- Judging by position ----*/

/* Compiled code may lag behind the position, but runs no line that the interpreter did not. */
static enum verdict judge_compiled(const struct truth *truth, const struct stack_text *said)
{
	if (is_builtin(said->frames[said->count - 1]))
		return is_call(truth, said, said->count) ? VERDICT_RIGHT : VERDICT_WRONG;
	for (size_t i = 0; i + 1 < truth->event_count; i++)
		if (begins_with(truth->events[i].stack, said, said->count) ||
		    has_just_entered(truth->events[i].stack, said))
			return VERDICT_RIGHT;
	return VERDICT_WRONG;
}

/*
 * What is known of a lost stack: the frames from the root to the first lost one. Builtins may stand on
 * them, or the last may be just entered.
 */
static bool is_known_right(const struct truth *truth, const struct stack_text *event,
			   const struct stack_text *said)
{
	size_t last = said->lost_at - 1;

	if (begins_with(event, said, said->lost_at) || has_builtins_on_top(truth, event, said, said->lost_at))
		return true;
	return said->lost_at > 0 && said->lost_at <= event->count && begins_with(event, said, last) &&
	       same_function(event->frames[last], said->frames[last]) && is_at_definition(said->frames[last]);
}

static enum verdict judge_interpreted(const struct truth *truth, int position, const struct stack_text *stack)
{
	for (size_t i = 0; i + 1 < truth->event_count; i++) {
		const struct event *first = &truth->events[i], *next = first + 1;

		if (first->position != position && next->position != position)
			continue;
		if (rank_between(truth, first->stack, next->stack, stack) != RANK_NONE)
			return VERDICT_RIGHT;
	}
	return VERDICT_WRONG;
}

static enum verdict judge_lost(const struct truth *truth, const struct stack_text *stack)
{
	for (size_t i = 0; i + 1 < truth->event_count; i++)
		if (is_known_right(truth, truth->events[i].stack, stack))
			return VERDICT_LOST;
	return VERDICT_WRONG;
}

enum verdict truth_judge(const struct truth *truth, int position, const struct stack_text *stack)
{
	static struct stack_text below;

	if (stack->lost)
		return judge_lost(truth, stack);
	/* The collector finalizes a builtin's object on whichever stack takes memory. */
	if (stack->count > 1 && strcmp(stack->frames[stack->count - 1], "[__gc]") == 0) {
		below = *stack;
		below.count--;
		stack = &below;
	}
	return stack->compiled ? judge_compiled(truth, stack) : judge_interpreted(truth, position, stack);
}

/*---- Following ----*/

static void move_to(struct truth *truth, size_t at)
{
	truth->at = at;
	truth->rank = RANK_FIRST;
	truth->builtin[0] = '\0';
	truth->astray = false;
}

static bool is_in_order(struct truth *truth, int rank, const struct stack_text *stack)
{
	if (rank == RANK_FIRST) {
		if (truth->rank > RANK_FIRST_AGAIN)
			return false;
		truth->rank = truth->rank == RANK_FIRST ? RANK_FIRST : RANK_FIRST_AGAIN;
		return true;
	}
	if (rank == RANK_BUILTIN) {
		const char *leaf = stack->frames[stack->count - 1];

		/* One builtin is called once by a line of a program. */
		if (truth->rank > RANK_FIRST_AGAIN ||
		    (truth->rank == RANK_FIRST_AGAIN && strcmp(truth->builtin, leaf) == 0))
			return false;
		snprintf(truth->builtin, sizeof(truth->builtin), "%s", leaf);
		truth->rank = rank;
		return true;
	}
	if (rank < truth->rank)
		return false;
	truth->rank = rank;
	return true;
}

/* After something wrong or lost: where can we be? */
static bool catch_up(struct truth *truth, int position, const struct stack_text *stack)
{
	for (size_t i = truth->at; i < truth->event_count && i < truth->at + CATCH_UP_EVENTS; i++) {
		if (truth->events[i].position != position || !equals(truth->events[i].stack, stack))
			continue;
		move_to(truth, i);
		return true;
	}
	return false;
}

static enum verdict follow_known(struct truth *truth, int position, const struct stack_text *stack)
{
	const struct event *first = &truth->events[truth->at], *next = first + 1;
	bool was_astray = truth->astray;
	int rank = rank_between(truth, first->stack, next->stack, stack);

	/* The stack had to grow: the function is entered once more. */
	if (truth->at && truth->rank <= RANK_FIRST_AGAIN && has_just_entered(first->stack, stack) &&
	    common_depth(first[-1].stack, first->stack) < first->stack->count)
		rank = RANK_FIRST;
	if (position != first->position && position != next->position)
		rank = RANK_NONE;
	/* The stack is the same, but the position has been stored. */
	if (rank == RANK_FIRST && position != first->position && equals(next->stack, stack))
		rank = RANK_NEXT;
	if (rank == RANK_NEXT) {
		move_to(truth, truth->at + 1);
		return VERDICT_RIGHT;
	}
	if (rank != RANK_NONE) {
		if (is_in_order(truth, rank, stack))
			return VERDICT_RIGHT;
		truth->rank = rank;
		return VERDICT_WRONG;
	}
	if (catch_up(truth, position, stack))
		return was_astray ? VERDICT_RIGHT : VERDICT_WRONG;
	truth->astray = true;
	return VERDICT_WRONG;
}

enum verdict truth_follow(struct truth *truth, int position, const struct stack_text *stack)
{
	const struct event *first;

	if (!truth->started) {
		while (truth->events[truth->at + 1].position != 1)
			truth->at++;
		truth->started = true;
		truth->astray = true;
	}
	if (truth_is_followed_to_its_end(truth))
		return VERDICT_RIGHT;
	if (!stack->lost)
		return follow_known(truth, position, stack);
	first = &truth->events[truth->at];
	truth->astray = true;
	return is_known_right(truth, first->stack, stack) || is_known_right(truth, first[1].stack, stack)
		       ? VERDICT_LOST
		       : VERDICT_WRONG;
}

bool truth_is_followed_to_its_end(const struct truth *truth)
{
	return truth->at + 1 >= truth->event_count;
}

void truth_print_expected(FILE *file, const struct truth *truth)
{
	for (size_t i = truth->at; i < truth->at + 2 && i < truth->event_count; i++) {
		fprintf(file, "    event %zu position %d rank %d: ", i, truth->events[i].position,
			truth->rank);
		stack_text_print(file, truth->events[i].stack);
	}
}
