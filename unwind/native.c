#include "unwind/native.h"

#include <stdlib.h>
#include <string.h>

#include <libunwind.h>

#include "unwind/cfi.h"
#include "unwind/unwind_entry.h"

/*
 * Exported by libunwind for implementers of find_proc_info (perf uses it too)
 * but declared in its private headers only.
 */
int UNW_OBJ(dwarf_search_unwind_table)(unw_addr_space_t space, unw_word_t ip,
				       unw_dyn_info_t *table, unw_proc_info_t *info,
				       int need_unwind_info, void *context);

struct native_unwinder {
	struct image *image;
	struct cfi *cfi;
	struct memory *stack;
	unw_addr_space_t space;
	struct unwind_entry entry;	/* all of the tables that libunwind sees */
	unw_cursor_t cursor;
	struct native_frame frame;
	bool cursor_is_valid;	/* the cursor stands at frame */
	bool lacks_register;	/* the last step asked for one that is not known */
	bool missed;		/* the last step found no table: its result would be a guess */
};

/* Have libunwind search a table of one pair, which leads to an entry that was checked. */
static int find_proc_info(unw_addr_space_t space, unw_word_t ip, unw_proc_info_t *info,
			  int need_unwind_info, void *context)
{
	struct native_unwinder *unwinder = context;
	struct module *module = image_find(unwinder->image, ip);
	uint64_t pair, begin;
	unw_dyn_info_t table;
	int result;

	if (!module || !image_unwind_entry(unwinder->image, module, ip, &pair, &begin) ||
	    !unwind_entry_read(image_text(unwinder->image), module->unwind_table.header, pair,
			       &unwinder->entry)) {
		unwinder->missed = true;
		return -UNW_ENOINFO;
	}
	memset(&table, 0, sizeof(table));
	table.format = UNW_INFO_FORMAT_REMOTE_TABLE;
	table.start_ip = module->begin;
	table.end_ip = module->end;
	table.u.rti.segbase = module->unwind_table.header;
	table.u.rti.table_data = pair;
	table.u.rti.table_len = 1;	/* in words; a pair is one */
	result = UNW_OBJ(dwarf_search_unwind_table)(space, ip, &table, info,
						    need_unwind_info, context);
	if (result < 0)
		unwinder->missed = true;
	return result;
}

static void put_unwind_info(unw_addr_space_t space, unw_proc_info_t *info, void *context)
{
	(void)space;
	(void)info;
	(void)context;
}

static int get_dyn_info_list_addr(unw_addr_space_t space, unw_word_t *list, void *context)
{
	(void)space;
	(void)list;
	(void)context;
	return -UNW_ENOINFO;
}

static int access_mem(unw_addr_space_t space, unw_word_t address, unw_word_t *value,
		      int write, void *context)
{
	struct native_unwinder *unwinder = context;
	struct memory *memory;

	(void)space;
	if (write)
		return -UNW_EINVAL;
	if (unwind_entry_word(&unwinder->entry, address, value))
		return 0;
	memory = image_find(unwinder->image, address) ? image_text(unwinder->image)
						       : unwinder->stack;
	return memory_read(memory, address, value, sizeof(*value)) == MEMORY_OK ? 0 : -UNW_EINVAL;
}

static int access_reg(unw_addr_space_t space, unw_regnum_t number, unw_word_t *value,
		      int write, void *context)
{
	struct native_unwinder *unwinder = context;
	const uint64_t *held = registers_locate(&unwinder->frame.registers, number);

	(void)space;
	if (write || !held)
		return -UNW_EBADREG;
	if (unwinder->frame.registers.unknown & registers_set_of(number)) {
		unwinder->lacks_register = true;
		return -UNW_EBADREG;
	}
	*value = *held;
	/* Tables are looked up by the call, which lies before the return address. */
	if (number == UNW_X86_64_RIP && unwinder->frame.is_return_address)
		*value -= 1;
	return 0;
}

static int access_fpreg(unw_addr_space_t space, unw_regnum_t number, unw_fpreg_t *value,
			int write, void *context)
{
	(void)space;
	(void)number;
	(void)value;
	(void)write;
	(void)context;
	return -UNW_EBADREG;
}

static int resume(unw_addr_space_t space, unw_cursor_t *cursor, void *context)
{
	(void)space;
	(void)cursor;
	(void)context;
	return -UNW_EINVAL;
}

static int get_proc_name(unw_addr_space_t space, unw_word_t address, char *buffer, size_t length,
			 unw_word_t *offset, void *context)
{
	(void)space;
	(void)address;
	(void)buffer;
	(void)length;
	(void)offset;
	(void)context;
	return -UNW_ENOINFO;
}

struct native_unwinder *native_unwinder_new(struct image *image, struct symbols *symbols)
{
	unw_accessors_t accessors = {
		.find_proc_info = find_proc_info,
		.put_unwind_info = put_unwind_info,
		.get_dyn_info_list_addr = get_dyn_info_list_addr,
		.access_mem = access_mem,
		.access_reg = access_reg,
		.access_fpreg = access_fpreg,
		.resume = resume,
		.get_proc_name = get_proc_name,
	};
	struct native_unwinder *unwinder = calloc(1, sizeof(*unwinder));

	if (!unwinder)
		return NULL;
	unwinder->image = image;
	unwinder->cfi = cfi_new(symbols);
	unwinder->space = unw_create_addr_space(&accessors, 0);
	if (!unwinder->cfi || !unwinder->space) {
		native_unwinder_free(unwinder);
		return NULL;
	}
	unw_set_caching_policy(unwinder->space, UNW_CACHE_GLOBAL);
	return unwinder;
}

void native_unwinder_free(struct native_unwinder *unwinder)
{
	if (!unwinder)
		return;
	if (unwinder->space)
		unw_destroy_addr_space(unwinder->space);
	cfi_free(unwinder->cfi);
	free(unwinder);
}

void native_reset(struct native_unwinder *unwinder)
{
	unw_flush_cache(unwinder->space, 0, 0);
	cfi_reset(unwinder->cfi);
}

static void arrive(struct native_unwinder *unwinder, const struct registers *registers,
		   bool is_return_address)
{
	uint64_t pc = registers->rip - (is_return_address ? 1 : 0);

	unwinder->lacks_register = false;
	unwinder->frame.registers = *registers;
	unwinder->frame.is_return_address = is_return_address;
	unwinder->frame.code = image_classify(unwinder->image, pc, &unwinder->frame.module);
}

void native_begin(struct native_unwinder *unwinder, struct memory *stack,
		  const struct registers *leaf)
{
	unwinder->stack = stack;
	unwinder->cursor_is_valid = false;
	arrive(unwinder, leaf, false);
}

void native_continue(struct native_unwinder *unwinder, const struct registers *caller)
{
	unwinder->cursor_is_valid = false;
	arrive(unwinder, caller, true);
}

const struct native_frame *native_current(const struct native_unwinder *unwinder)
{
	return &unwinder->frame;
}

/*
 * Is this where a signal handler returns to? Told by its code, as gdb and libgcc
 * do: a cursor begun at a return address looks for it before that.
 */
static bool is_signal_return(const struct native_unwinder *unwinder)
{
	/* mov rax, __NR_rt_sigreturn; syscall */
	static const uint8_t code[] = { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 };
	uint8_t bytes[sizeof(code)];

	return memory_read(image_text(unwinder->image), unwinder->frame.registers.rip, bytes,
			   sizeof(bytes)) == MEMORY_OK && memcmp(bytes, code, sizeof(code)) == 0;
}

bool native_lacks_register(const struct native_unwinder *unwinder)
{
	return unwinder->lacks_register;
}

/* By the tables that .eh_frame_hdr leads to. */
static enum native_status step_by_table(struct native_unwinder *unwinder,
					struct registers *ret_caller)
{
	struct registers caller = { .orig_rax = UINT64_MAX };
	int result;

	unwinder->missed = false;
	if (!unwinder->cursor_is_valid &&
	    unw_init_remote(&unwinder->cursor, unwinder->space, unwinder) < 0)
		return NATIVE_LOST;
	unwinder->cursor_is_valid = true;
	result = unw_step(&unwinder->cursor);
	if (unwinder->missed || result < 0)
		return NATIVE_LOST;
	if (result == 0)
		return NATIVE_END;
	for (int number = 0; number < REGISTER_NUMBERS; number++)
		if (unw_get_reg(&unwinder->cursor, number, registers_locate(&caller, number)) < 0)
			caller.unknown |= registers_set_of(number);
	*ret_caller = caller;
	return NATIVE_FRAME;
}

/* By what the module's file says, where no table covers the pc. */
static enum native_status step_by_file(struct native_unwinder *unwinder,
				       struct registers *ret_caller)
{
	uint64_t pc = unwinder->frame.registers.rip - (unwinder->frame.is_return_address ? 1 : 0);
	enum cfi_status status = cfi_step(unwinder->cfi, pc, &unwinder->frame.registers,
					  unwinder->stack, ret_caller);

	unwinder->cursor_is_valid = false;
	unwinder->lacks_register = status == CFI_REGISTER_UNKNOWN;
	return status == CFI_CALLER ? NATIVE_FRAME : NATIVE_LOST;
}

enum native_status native_step(struct native_unwinder *unwinder)
{
	uint64_t sp = unwinder->frame.registers.rsp;
	struct registers caller;
	bool is_signal_frame = is_signal_return(unwinder);
	enum native_status status;

	unwinder->lacks_register = false;
	status = step_by_table(unwinder, &caller);
	if (unwinder->missed)
		status = step_by_file(unwinder, &caller);
	if (status != NATIVE_FRAME)
		return status;
	if (caller.rip == 0)
		return NATIVE_END;
	/* A signal handler's caller was interrupted, with whatever its registers held. */
	if (!is_signal_frame)
		caller.unknown |= REGISTER_OTHERS;
	/* A stack only ever shrinks towards its callers, but for alternate signal stacks. */
	if (caller.rsp <= sp && !is_signal_frame)
		return NATIVE_LOST;
	arrive(unwinder, &caller, !is_signal_frame);
	return NATIVE_FRAME;
}
