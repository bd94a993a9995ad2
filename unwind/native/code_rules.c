/* SPDX-License-Identifier: MIT */
#include "unwind/native/code_rules.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include "memory/scatter.h"
#include "unwind/elf/plt_jump.h"
#include "unwind/native/code_path.h"
#include "unwind/native/known_rules.h"

enum {
	INSTRUCTIONS_MAX = 2048, /* decoded for one frame */
	SEEN_SIZE = 2 * INSTRUCTIONS_MAX,
	WAYS_MAX = 128,            /* pending branches; more are not followed */
	RETURNS_ENOUGH = 2,        /* returns that agree */
	KNOWN_MAX = 1024,          /* cached addresses */
	MADE_BYTES_MAX = 64 << 10, /* generated code that the rules of one address depend on */
	CALL_BYTES_MAX = 7,
	FUNCTIONS_MAX = 32,             /* that jump from one to the next */
	FUNCTION_BYTES_MAX = 256 << 10, /* of one of these */
	LEADS_KNOWN = 64,
	PLT_BYTES = 16,
	PAGE_SIZE = 4096,
	WORD = sizeof(uint64_t),
};

/* The values after the return. */
struct returned {
	struct path_value pc, sp, kept[REGISTER_NUMBERS]; /* those of registers_are_kept() */
};

struct code_rules {
	struct image *image;
	struct vm_decoder *decoder;
	struct memory *copy; /* the current caller's */
	struct known_rules known;
	struct made_code made; /* what was decoded of it */
	struct code_path ways[WAYS_MAX];
	size_t way_count;
	uint64_t seen[SEEN_SIZE]; /* addresses of instructions */
	uint8_t bytes[MADE_BYTES_MAX];
	struct known_lead {
		uint64_t from, to;
		enum code_leads leads;
	} leads[LEADS_KNOWN]; /* by a hash of both */
};

struct code_rules *code_rules_new(struct image *image)
{
	struct code_rules *code = calloc(1, sizeof(*code));

	if (!code)
		return NULL;
	code->known.max = KNOWN_MAX;
	code->image = image;
	code->decoder = vm_decoder_new();
	if (!code->decoder) {
		free(code);
		return NULL;
	}
	return code;
}

void code_rules_reset(struct code_rules *code)
{
	known_rules_clear(&code->known);
	memset(code->leads, 0, sizeof(code->leads));
}

void code_rules_free(struct code_rules *code)
{
	if (!code)
		return;
	code_rules_reset(code);
	vm_decoder_free(code->decoder);
	free(code);
}

/*---- Code ----*/

static bool read_code(const struct code_rules *code, uint64_t address, uint8_t *bytes, size_t length)
{
	if (!image_is_made(code->image, address))
		return memory_read(image_text(code->image), address, bytes, length) == MEMORY_OK;
	return memory_read(code->copy, address, bytes, length) == MEMORY_OK ||
	       memory_read(image_live(code->image), address, bytes, length) == MEMORY_OK;
}

/* Read the bytes of one instruction, up to the page's end if the next page is not mapped. Return how many. */
static size_t fetch(const struct code_rules *code, uint64_t pc,
		    uint8_t bytes[static VM_INSTRUCTION_BYTES_MAX])
{
	size_t in_page = PAGE_SIZE - pc % PAGE_SIZE;

	if (read_code(code, pc, bytes, VM_INSTRUCTION_BYTES_MAX))
		return VM_INSTRUCTION_BYTES_MAX;
	return in_page < VM_INSTRUCTION_BYTES_MAX && read_code(code, pc, bytes, in_page) ? in_page : 0;
}

static void note_made(struct code_rules *code, uint64_t begin, uint64_t end)
{
	if (!image_is_made(code->image, begin))
		return;
	if (code->made.begin == code->made.end)
		code->made.begin = begin;
	if (begin < code->made.begin)
		code->made.begin = begin;
	if (end > code->made.end)
		code->made.end = end;
}

static const struct vm_instruction *decode(struct code_rules *code, uint64_t pc)
{
	uint8_t bytes[VM_INSTRUCTION_BYTES_MAX];
	size_t length = fetch(code, pc, bytes);
	const struct vm_instruction *instruction = length ? vm_decoder_decode(code->decoder, pc, bytes,
									      length)
							  : NULL;

	if (instruction)
		note_made(code, pc, pc + vm_instruction_size(instruction));
	return instruction;
}

static bool is_vm(const struct code_rules *code, uint64_t pc)
{
	enum code_kind kind = image_classify(code->image, pc, NULL);

	return kind == CODE_VM || kind == CODE_VM_FFI_CALL || image_in_unknown_vm(code->image, pc);
}

/*---- Calls ----*/

/* Functions that a way leads through. */
struct lead {
	uint64_t seen[FUNCTIONS_MAX];
	size_t seen_count, next;
};

/* Where a jump through a procedure linkage table leads, or the address itself. */
static uint64_t behind_plt(struct image *image, uint64_t address)
{
	uint8_t bytes[PLT_BYTES];
	uint64_t slot, target;

	if (memory_read(image_text(image), address, bytes, sizeof(bytes)) == MEMORY_OK &&
	    plt_jump_decode(bytes, sizeof(bytes), address, &slot) &&
	    memory_u64(image_live(image), slot, &target))
		return target;
	return address;
}

/* Queue a function that the way goes on to. False when there are too many. */
static bool go_on_to(struct image *image, struct lead *lead, uint64_t address)
{
	address = behind_plt(image, address);
	for (size_t i = 0; i < lead->seen_count; i++)
		if (lead->seen[i] == address)
			return true;
	if (lead->seen_count == FUNCTIONS_MAX)
		return false;
	lead->seen[lead->seen_count++] = address;
	return true;
}

/* Queue what a function jumps to. False if that cannot be known. */
static bool follow_jumps(struct code_rules *code, struct lead *lead, uint64_t from)
{
	const struct vm_instruction *instruction;
	uint64_t begin, end, target;

	if (image_classify(code->image, from, NULL) != CODE_NATIVE ||
	    !image_function(code->image, from, &begin, &end) || begin != from ||
	    end - begin > FUNCTION_BYTES_MAX)
		return false;
	for (uint64_t pc = begin; pc < end; pc += vm_instruction_size(instruction)) {
		instruction = decode(code, pc);
		if (!instruction || vm_instruction_is_indirect_jump(instruction))
			return false;
		if (vm_instruction_jumps_to(instruction, &target) && (target < begin || target >= end) &&
		    !go_on_to(code->image, lead, target))
			return false;
	}
	return true;
}

static enum code_leads find_lead(struct code_rules *code, uint64_t from, uint64_t to)
{
	struct lead lead = { .seen_count = 0 };
	enum code_leads leads = CODE_LEADS_NOT;

	go_on_to(code->image, &lead, from);
	while (lead.next < lead.seen_count) {
		from = lead.seen[lead.next++];
		if (from == to)
			return CODE_LEADS;
		if (!follow_jumps(code, &lead, from))
			leads = CODE_LEADS_PERHAPS;
	}
	return leads;
}

enum code_leads code_rules_lead(struct code_rules *code, uint64_t from, uint64_t to)
{
	struct known_lead *known = &code->leads[scatter(from ^ scatter(to)) % LEADS_KNOWN];

	if (known->from != from || known->to != to)
		*known = (struct known_lead){ from, to, find_lead(code, from, to) };
	return known->leads;
}

/* One of the calls that may end at an address; false if it is none. */
typedef bool call_judge(struct code_rules *code, const struct vm_instruction *call, uint64_t function);

static bool is_any_call(struct code_rules *code, const struct vm_instruction *call, uint64_t function)
{
	(void)code;
	(void)call;
	(void)function;
	return true;
}

static bool is_call_of(struct code_rules *code, const struct vm_instruction *call, uint64_t function)
{
	uint64_t target;

	return !vm_instruction_calls(call, &target) ||
	       code_rules_lead(code, target, function) != CODE_LEADS_NOT;
}

static bool follows(struct code_rules *code, struct memory *copy, uint64_t address, call_judge *judge,
		    uint64_t function)
{
	uint8_t bytes[CALL_BYTES_MAX];

	code->copy = copy;
	/* call rel32 has five bytes. The length of an indirect call depends on its operand. */
	for (size_t length = 2; length <= CALL_BYTES_MAX; length++) {
		const struct vm_instruction *call = NULL;

		if (read_code(code, address - length, bytes, length))
			call = vm_decoder_decode(code->decoder, address - length, bytes, length);
		if (call && vm_instruction_is_call(call) && vm_instruction_size(call) == length &&
		    judge(code, call, function))
			return true;
	}
	return false;
}

bool code_rules_follows_call(struct code_rules *code, struct memory *copy, uint64_t address)
{
	return follows(code, copy, address, is_any_call, 0);
}

bool code_rules_follows_call_of(struct code_rules *code, struct memory *copy, uint64_t address,
				uint64_t function)
{
	return follows(code, copy, address, is_call_of, function);
}

/*---- Ways to a return ----*/

/* True on the first visit of pc. */
static bool see(struct code_rules *code, uint64_t pc)
{
	size_t at = (size_t)(scatter(pc) % SEEN_SIZE);

	while (code->seen[at] && code->seen[at] != pc)
		at = (at + 1) % SEEN_SIZE;
	if (code->seen[at] == pc)
		return false;
	code->seen[at] = pc;
	return true;
}

static bool is_same(const struct path_value *a, const struct path_value *b)
{
	return a->kind == b->kind && a->number == b->number && a->offset == b->offset;
}

static void note_return(const struct code_path *path, struct path_value pc, struct returned *returned)
{
	*returned = (struct returned){ .pc = pc, .sp = path->registers[REGISTER_NUMBER_SP] };
	for (int number = 0; number < REGISTER_NUMBERS; number++)
		if (registers_are_kept(number))
			returned->kept[number] = path->registers[number];
}

/* False if return address or stack pointer differ. Other registers that differ become unknown. */
static bool agree(struct returned *returned, const struct returned *other)
{
	if (!is_same(&returned->pc, &other->pc) || !is_same(&returned->sp, &other->sp))
		return false;
	for (int number = 0; number < REGISTER_NUMBERS; number++)
		if (!is_same(&returned->kept[number], &other->kept[number]))
			returned->kept[number].kind = PATH_UNKNOWN;
	return true;
}

enum followed { FOLLOWED_RETURNS, FOLLOWED_RETURNS_DOUBTFULLY, FOLLOWED_ENDS, FOLLOWED_INTO_VM };

/* Follow one path until it returns, ends or meets code already seen. Queue the targets of its branches. */
static enum followed follow(struct code_rules *code, struct code_path *path, unsigned int *left,
			    struct returned *ret_returned)
{
	while (*left && see(code, path->pc)) {
		const struct vm_instruction *instruction;
		struct path_value pc;
		uint64_t target;

		if (is_vm(code, path->pc))
			return FOLLOWED_INTO_VM;
		instruction = decode(code, path->pc);
		if (!instruction)
			return FOLLOWED_ENDS;
		--*left;
		switch (code_path_step(path, instruction, &target, &pc)) {
		case PATH_ON: break;
		case PATH_BRANCHES:
			if (code->way_count == WAYS_MAX)
				break;
			code->ways[code->way_count] = *path;
			code->ways[code->way_count++].pc = target;
			break;
		case PATH_RETURNS:
			if (pc.kind == PATH_UNKNOWN || path->registers[REGISTER_NUMBER_SP].kind != PATH_SUM)
				return FOLLOWED_ENDS;
			note_return(path, pc, ret_returned);
			return code_path_may_be_astray(path, pc) ? FOLLOWED_RETURNS_DOUBTFULLY
								 : FOLLOWED_RETURNS;
		case PATH_ENDS: return FOLLOWED_ENDS;
		}
	}
	return FOLLOWED_ENDS;
}

/* Returns that were found, and what they have in common. */
struct findings {
	struct returned returned;
	unsigned int count;
	bool disagree;
};

static void add_finding(struct findings *findings, const struct returned *returned)
{
	if (findings->count++ == 0)
		findings->returned = *returned;
	else if (!agree(&findings->returned, returned))
		findings->disagree = true;
}

/* Doubtful returns count if there are no others. */
static bool find_return(struct code_rules *code, uint64_t pc, struct returned *ret_returned)
{
	struct findings sure = { 0 }, doubtful = { 0 };
	const struct findings *found;
	unsigned int left = INSTRUCTIONS_MAX;
	struct returned returned;
	struct code_path path;

	memset(code->seen, 0, sizeof(code->seen));
	code_path_begin(&code->ways[0], pc);
	code->way_count = 1;
	while (code->way_count && left && sure.count < RETURNS_ENOUGH) {
		path = code->ways[--code->way_count];
		switch (follow(code, &path, &left, &returned)) {
		case FOLLOWED_RETURNS: add_finding(&sure, &returned); break;
		case FOLLOWED_RETURNS_DOUBTFULLY: add_finding(&doubtful, &returned); break;
		case FOLLOWED_INTO_VM: return false;
		case FOLLOWED_ENDS: break;
		}
	}
	found = sure.count ? &sure : &doubtful;
	if (!found->count || found->disagree)
		return false;
	*ret_returned = found->returned;
	return true;
}

/*---- Rules ----*/

static void set_rule(struct frame_rules *rules, struct frame_rule *rule, const struct path_value *value)
{
	if (value->kind == PATH_UNKNOWN)
		return;
	rule->kind = value->kind == PATH_SUM ? FRAME_RULE_VALUE : FRAME_RULE_SAVED;
	rule->first = rules->op_count;
	rule->count = 1;
	rules->ops[rules->op_count++] = (struct frame_rule_op){
		.atom = DW_OP_bregx,
		.number = (uint64_t)value->number,
		.number2 = (uint64_t)value->offset,
	};
}

static void make_rules(const struct returned *returned, struct frame_rules *rules)
{
	memset(rules, 0, sizeof(*rules));
	set_rule(rules, &rules->cfa, &returned->sp);
	rules->registers[REGISTER_NUMBER_SP] = rules->cfa;
	set_rule(rules, &rules->registers[REGISTER_NUMBER_PC], &returned->pc);
	for (int number = 0; number < REGISTER_NUMBERS; number++)
		if (registers_are_kept(number))
			set_rule(rules, &rules->registers[number], &returned->kept[number]);
}

/*---- Code generated at run time ----*/

/* A hash of the generated code as it is now. False if it is too long or unreadable. */
static bool hash_made(struct code_rules *code, const struct made_code *made, uint64_t *ret_hash)
{
	size_t length = (size_t)(made->end - made->begin);
	uint64_t hash = length, word = 0;

	if (length > MADE_BYTES_MAX || !read_code(code, made->begin, code->bytes, length))
		return false;
	for (size_t at = 0; at < length; at += WORD) {
		memcpy(&word, code->bytes + at, length - at < WORD ? length - at : WORD);
		hash = scatter(hash ^ word);
	}
	*ret_hash = hash;
	return true;
}

static struct known_rule *find_known(struct code_rules *code, uint64_t pc)
{
	struct known_rule *known = known_rules_find(&code->known, pc);
	const struct made_code *made = known ? known_rule_made(known) : NULL;
	uint64_t hash;

	if (!known || (hash_made(code, made, &hash) && hash == made->hash))
		return known;
	known_rules_forget(&code->known, known);
	return NULL;
}

bool code_rules_find(struct code_rules *code, struct memory *copy, uint64_t pc, struct frame_rules *ret_rules)
{
	const struct known_rule *known;
	const struct frame_rules *rules;
	struct returned returned;
	bool found;

	code->copy = copy;
	known = find_known(code, pc);
	if (known) {
		rules = known_rule_rules(known);
		if (rules)
			memcpy(ret_rules, rules, frame_rules_length(rules));
		return rules != NULL;
	}
	code->made = (struct made_code){ 0 };
	found = find_return(code, pc, &returned);
	if (found)
		make_rules(&returned, ret_rules);
	/* Do not cache those of code that cannot be read again. */
	if (hash_made(code, &code->made, &code->made.hash))
		known_rules_add(&code->known, pc, found ? ret_rules : NULL, &code->made);
	return found;
}
