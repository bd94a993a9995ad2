/* SPDX-License-Identifier: MIT */
/*
 * What x86-64 code of an interpreter tells of its build: each shape of instructions one thing, and what is
 * nearly the same shape nothing. The code is made up.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "luajit-layouts/module/vm_code_x86_64.h"
#include "tests/unit/code_shapes.h"

static const struct code_line dispatch[] = { IS("\x48\x83\xc3\x04"), IS("\xc1\xe8\x10"),
					     IS("\x41\xff\x24\xee") };
static const struct code_machine gc64 = { .dispatch = dispatch,
					  .dispatch_count = sizeof(dispatch) / sizeof(dispatch[0]),
					  .nothing = IS("\x90"),
					  .room = 41,
					  .read = vm_code_x86_64_read };

/*---- Shapes. The dispatch table is at g + 0x2f0, J at g + 0x3f0 ----*/

/* Entry from C: the dispatch table is behind g. */
static const struct code_line entry[] = {
	IS("\x4c\x8b\x75\x10"),              /* mov r14, [rbp+0x10] */
	NOT("\x4c\x8b\x73\x10"),             /* mov r14, [rbx+0x10] */
	NOT("\x4c\x8b\x7d\x10"),             /* mov r15, [rbp+0x10] */
	NOT("\x4c\x8d\x75\x10"),             /* lea r14, [rbp+0x10] */
	NOT("\x4c\x8b\x74\x05\x10"),         /* mov r14, [rbp+rax+0x10] */
	IS("\x49\x81\xc6\xf0\x02\x00\x00"),  /* add r14, 0x2f0 */
	NOT("\x49\x81\xee\xf0\x02\x00\x00"), /* sub r14, 0x2f0 */
	NOT("\x49\x81\xc7\xf0\x02\x00\x00"), /* add r15, 0x2f0 */
	NOT("\x4d\x01\xfe"),                 /* add r14, r15 */
};

static const struct code_line ffi_callback[] = {
	IS("\x4c\x8d\xb5\xf0\x02\x00\x00"),  /* lea r14, [rbp+0x2f0] */
	NOT("\x4c\x8d\xb3\xf0\x02\x00\x00"), /* lea r14, [rbx+0x2f0] */
	NOT("\x4c\x8d\xbd\xf0\x02\x00\x00"), /* lea r15, [rbp+0x2f0] */
	NOT("\x4c\x8b\xb5\xf0\x02\x00\x00"), /* mov r14, [rbp+0x2f0] */
	IS("\x48\x8b\x9d\x78\x01\x00\x00"),  /* mov rbx, [rbp+0x178] */
	NOT("\x48\x8b\x9b\x78\x01\x00\x00"), /* mov rbx, [rbx+0x178] */
	NOT("\x48\x8b\x8d\x78\x01\x00\x00"), /* mov rcx, [rbp+0x178] */
	NOT("\x48\x8d\x9d\x78\x01\x00\x00"), /* lea rbx, [rbp+0x178] */
};

/* The interpreter runs: the thread is stored right before. */
static const struct code_line vmstate[] = {
	IS("\x49\x89\xae\x80\xfe\xff\xff"),                 /* mov [r14-0x180], rbp */
	NOT("\x49\x89\x9e\x80\xfe\xff\xff"),                /* mov [r14-0x180], rbx */
	NOT("\x49\x89\xad\x80\xfe\xff\xff"),                /* mov [r13-0x180], rbp */
	NOT("\x49\x8b\xae\x80\xfe\xff\xff"),                /* mov rbp, [r14-0x180] */
	IS("\x41\xc7\x86\x10\xfe\xff\xff\xff\xff\xff\xff"), /* mov dword ptr [r14-0x1f0], -1 */
};

/* A hot loop or call: J is an argument. */
static const struct code_line hot[] = {
	IS("\x49\x8d\xbe\x00\x01\x00\x00"),  /* lea rdi, [r14+0x100] */
	NOT("\x49\x8d\xb6\x00\x01\x00\x00"), /* lea rsi, [r14+0x100] */
	NOT("\x49\x8d\xbd\x00\x01\x00\x00"), /* lea rdi, [r13+0x100] */
	NOT("\x49\x8b\xbe\x00\x01\x00\x00"), /* mov rdi, [r14+0x100] */
	IS("\x49\x89\xae\x68\x01\x00\x00"),  /* mov [r14+0x168], rbp */
	NOT("\x49\x89\x9e\x68\x01\x00\x00"), /* mov [r14+0x168], rbx */
	NOT("\x49\x89\xad\x68\x01\x00\x00"), /* mov [r13+0x168], rbp */
	NOT("\x49\x8b\xae\x68\x01\x00\x00"), /* mov rbp, [r14+0x168] */
};

/* BC_JLOOP */
static const struct code_line jloop[] = {
	IS("\x49\x8b\x8e\x00\x03\x00\x00"),  /* mov rcx, [r14+0x300] */
	NOT("\x49\x8b\x8d\x00\x03\x00\x00"), /* mov rcx, [r13+0x300] */
	NOT("\x49\x8b\x9e\x00\x03\x00\x00"), /* mov rbx, [r14+0x300] */
	IS("\x48\x8b\x04\xc1"),              /* mov rax, [rcx+rax*8] */
	NOT("\x48\x8b\x04\xc3"),             /* mov rax, [rbx+rax*8] */
	NOT("\x48\x8b\x04\xd9"),             /* mov rax, [rcx+rbx*8] */
	NOT("\x48\x8d\x04\xc1"),             /* lea rax, [rcx+rax*8] */
	IS("\x48\x8b\x40\x40"),              /* mov rax, [rax+0x40] */
	NOT("\x48\x8b\x41\x40"),             /* mov rax, [rcx+0x40] */
	NOT("\x48\x8b\x48\x40"),             /* mov rcx, [rax+0x40] */
	IS("\x48\x8b\x6c\x24\x10"),          /* mov rbp, [rsp+0x10] */
	NOT("\x48\x8b\x5c\x24\x10"),         /* mov rbx, [rsp+0x10] */
	NOT("\x48\x8b\x68\x10"),             /* mov rbp, [rax+0x10] */
	IS("\x49\x89\x96\x78\xfe\xff\xff"),  /* mov [r14-0x188], rdx */
	NOT("\x49\x89\x95\x78\xfe\xff\xff"), /* mov [r13-0x188], rdx */
	NOT("\x49\x89\x9e\x78\xfe\xff\xff"), /* mov [r14-0x188], rbx */
	IS("\x49\x89\x6e\xa0"),              /* mov [r14-0x60], rbp */
	NOT("\x49\x89\x6d\xa0"),             /* mov [r13-0x60], rbp */
	NOT("\x49\x89\x5e\xa0"),             /* mov [r14-0x60], rbx */
};

/* vm_exit_handler */
static const struct code_line exits[] = {
	IS("\x41\x8b\x8e\x10\xfe\xff\xff"),                  /* mov ecx, [r14-0x1f0] */
	NOT("\x41\x8b\x9e\x10\xfe\xff\xff"),                 /* mov ebx, [r14-0x1f0] */
	NOT("\x41\x8b\x8d\x10\xfe\xff\xff"),                 /* mov ecx, [r13-0x1f0] */
	NOT("\x41\x8b\x8e\x14\xfe\xff\xff"),                 /* mov ecx, [r14-0x1ec] */
	IS("\x41\xc7\x86\x10\xfe\xff\xff\xf8\xff\xff\xff"),  /* mov dword ptr [r14-0x1f0], -8 */
	NOT("\x41\xc6\x86\x10\xfe\xff\xff\xf8"),             /* mov byte ptr [r14-0x1f0], -8 */
	NOT("\x41\xc7\x85\x10\xfe\xff\xff\xf8\xff\xff\xff"), /* mov dword ptr [r13-0x1f0], -8 */
	NOT("\x41\x89\x9e\x10\xfe\xff\xff"),                 /* mov [r14-0x1f0], ebx */
	IS("\x41\x89\x86\x00\x05\x00\x00"),                  /* mov [r14+0x500], eax */
	NOT("\x41\x89\x9e\x00\x05\x00\x00"),                 /* mov [r14+0x500], ebx */
	NOT("\x41\x89\x85\x00\x05\x00\x00"),                 /* mov [r13+0x500], eax */
	IS("\x41\x89\x8e\xfc\x04\x00\x00"),                  /* mov [r14+0x4fc], ecx */
	NOT("\x41\x89\x9e\xfc\x04\x00\x00"),                 /* mov [r14+0x4fc], ebx */
	NOT("\x41\x89\x8d\xfc\x04\x00\x00"),                 /* mov [r13+0x4fc], ecx */
};

/* vm_exit_interp: the error is an argument. */
static const struct code_line exit_error[] = {
	IS("\x89\xc6"),      /* mov esi, eax */
	NOT("\x89\xde"),     /* mov esi, ebx */
	NOT("\x89\xc3"),     /* mov ebx, eax */
	NOT("\x01\xc6"),     /* add esi, eax */
	IS("\x48\x89\xef"),  /* mov rdi, rbp */
	NOT("\x48\x89\xdf"), /* mov rdi, rbx */
	NOT("\x48\x89\xeb"), /* mov rbx, rbp */
	NOT("\x48\x01\xef"), /* add rdi, rbp */
	IS("\xf7\xde"),      /* neg esi */
	NOT("\xf7\xdb"),     /* neg ebx */
	NOT("\xf7\xd6"),     /* not esi */
};

/* The C frame. */
static const struct code_line saveregs[] = {
	IS("\x53"),              /* push rbx */
	NOT("\x51"),             /* push rcx */
	NOT("\x5b"),             /* pop rbx */
	IS("\x41\x57"),          /* push r15 */
	NOT("\x41\x55"),         /* push r13 */
	IS("\x41\x56"),          /* push r14 */
	NOT("\x41\x55"),         /* push r13 */
	IS("\x48\x83\xec\x28"),  /* sub rsp, 0x28 */
	NOT("\x48\x83\xeb\x28"), /* sub rbx, 0x28 */
	NOT("\x48\x83\xc4\x28"), /* add rsp, 0x28 */
	NOT("\x48\x29\xdc"),     /* sub rsp, rbx */
};

/* ... and with two registers more. */
static const struct code_line saveregs_more[] = {
	IS("\x53"),             /* push rbx */
	IS("\x41\x57"),         /* push r15 */
	IS("\x41\x56"),         /* push r14 */
	IS("\x41\x55"),         /* push r13 */
	IS("\x41\x54"),         /* push r12 */
	IS("\x48\x83\xec\x18"), /* sub rsp, 0x18 */
};

/* string.byte */
static const struct code_line string[] = {
	IS("\x83\x7d\x14\x01"),              /* cmp dword ptr [rbp+0x14], 1 */
	NOT("\x83\x7b\x14\x01"),             /* cmp dword ptr [rbx+0x14], 1 */
	NOT("\x48\x83\x7d\x14\x01"),         /* cmp qword ptr [rbp+0x14], 1 */
	NOT("\x83\x7d\x14\x02"),             /* cmp dword ptr [rbp+0x14], 2 */
	NOT("\x39\x45\x14"),                 /* cmp [rbp+0x14], eax */
	NOT("\xf7\x45\x14\x01\x00\x00\x00"), /* test dword ptr [rbp+0x14], 1 */
	IS("\x72\x00"),                      /* jb .+2 */
	NOT("\x73\x00"),                     /* jae .+2 */
	IS("\x0f\xb6\x6d\x18"),              /* movzx ebp, byte ptr [rbp+0x18] */
	NOT("\x0f\xb6\x5d\x18"),             /* movzx ebx, byte ptr [rbp+0x18] */
	NOT("\x0f\xb6\x6b\x18"),             /* movzx ebp, byte ptr [rbx+0x18] */
	NOT("\x0f\xbe\x6d\x18"),             /* movsx ebp, byte ptr [rbp+0x18] */
};

static const struct code_line gc_check[] = {
	IS("\x49\x8b\x86\x20\xfd\xff\xff"),  /* mov rax, [r14-0x2e0] */
	NOT("\x49\x8b\x85\x20\xfd\xff\xff"), /* mov rax, [r13-0x2e0] */
	NOT("\x49\x89\x86\x20\xfd\xff\xff"), /* mov [r14-0x2e0], rax */
	NOT("\x49\x8d\x86\x20\xfd\xff\xff"), /* lea rax, [r14-0x2e0] */
	IS("\x49\x3b\x86\x28\xfd\xff\xff"),  /* cmp rax, [r14-0x2d8] */
	NOT("\x49\x3b\x85\x28\xfd\xff\xff"), /* cmp rax, [r13-0x2d8] */
	NOT("\x49\x3b\x9e\x28\xfd\xff\xff"), /* cmp rbx, [r14-0x2d8] */
	NOT("\x49\x3b\x86\x30\xfd\xff\xff"), /* cmp rax, [r14-0x2d0] */
	NOT("\x49\x03\x86\x28\xfd\xff\xff"), /* add rax, [r14-0x2d8] */
};

static const struct code_line hook_test[] = {
	IS("\x41\x0f\xb6\x86\x19\xfe\xff\xff"),  /* movzx eax, byte ptr [r14-0x1e7] */
	NOT("\x41\x0f\xb6\x85\x19\xfe\xff\xff"), /* movzx eax, byte ptr [r13-0x1e7] */
	NOT("\x41\x0f\xb7\x86\x19\xfe\xff\xff"), /* movzx eax, word ptr [r14-0x1e7] */
	NOT("\x41\x0f\xbe\x86\x19\xfe\xff\xff"), /* movsx eax, byte ptr [r14-0x1e7] */
};

static const struct code_line getmetatable[] = {
	IS("\x49\x8b\x46\x10"),      /* mov rax, [r14+0x10] */
	NOT("\x49\x8b\x45\x10"),     /* mov rax, [r13+0x10] */
	NOT("\x49\x8b\x5e\x10"),     /* mov rbx, [r14+0x10] */
	NOT("\x49\x8d\x46\x10"),     /* lea rax, [r14+0x10] */
	IS("\x49\x8b\x6c\xce\x80"),  /* mov rbp, [r14+rcx*8-0x80] */
	NOT("\x49\x8b\x5c\xce\x80"), /* mov rbx, [r14+rcx*8-0x80] */
	NOT("\x49\x8b\x6c\xcd\x80"), /* mov rbp, [r13+rcx*8-0x80] */
	NOT("\x49\x8b\x6e\x80"),     /* mov rbp, [r14-0x80] */
	NOT("\x49\x8d\x6c\xce\x80"), /* lea rbp, [r14+rcx*8-0x80] */
};

/* BC_ISNEXT */
static const struct code_line isnext[] = {
	IS("\xc6\x43\xfc\x58"),              /* mov byte ptr [rbx-4], 0x58 */
	NOT("\xc6\x43\xfd\x58"),             /* mov byte ptr [rbx-3], 0x58 */
	NOT("\xc6\x41\xfc\x58"),             /* mov byte ptr [rcx-4], 0x58 */
	NOT("\xc7\x43\xfc\x58\x00\x00\x00"), /* mov dword ptr [rbx-4], 0x58 */
	IS("\xc6\x03\x52"),                  /* mov byte ptr [rbx], 0x52 */
	NOT("\xc6\x43\x01\x52"),             /* mov byte ptr [rbx+1], 0x52 */
	NOT("\xc6\x01\x52"),                 /* mov byte ptr [rcx], 0x52 */
	NOT("\xc7\x03\x52\x00\x00\x00"),     /* mov dword ptr [rbx], 0x52 */
};

/* vm_exit_interp: is it a function header? */
static const struct code_line exit_dispatch[] = {
	IS("\xc1\xe8\x10"),              /* shr eax, 16 */
	NOT("\xc1\xeb\x10"),             /* shr ebx, 16 */
	NOT("\xc1\xe8\x0f"),             /* shr eax, 15 */
	NOT("\xc1\xe0\x10"),             /* shl eax, 16 */
	IS("\x83\xfd\x59"),              /* cmp ebp, 0x59 */
	NOT("\x83\xfb\x59"),             /* cmp ebx, 0x59 */
	NOT("\x39\xdd"),                 /* cmp ebp, ebx */
	NOT("\xf7\xc5\x59\x00\x00\x00"), /* test ebp, 0x59 */
	IS("\x72\x00"),                  /* jb .+2 */
	NOT("\x73\x00"),                 /* jae .+2 */
};

/* vm_resume */
static const struct code_line resume[] = {
	IS("\x4c\x8d\x7c\x24\x01"),  /* lea r15, [rsp+1] */
	NOT("\x48\x8d\x5c\x24\x01"), /* lea rbx, [rsp+1] */
	NOT("\x4c\x8d\x7d\x01"),     /* lea r15, [rbp+1] */
	NOT("\x4c\x8d\x7c\x24\x02"), /* lea r15, [rsp+2] */
	NOT("\x4c\x8b\x7c\x24\x01"), /* mov r15, [rsp+1] */
	IS("\x4c\x89\x7d\x50"),      /* mov [rbp+0x50], r15 */
	IS("\x80\x7d\x0b\x00"),      /* cmp byte ptr [rbp+0xb], 0 */
	IS("\x48\x8b\x55\x20"),      /* mov rdx, [rbp+0x20] */
	IS("\x48\x8b\x45\x28"),      /* mov rax, [rbp+0x28] */
	IS("\x89\x44\x24\x04"),      /* mov [rsp+4], eax */
};

/* vm_cpcall */
static const struct code_line cpcall[] = {
	IS("\x48\x89\x7c\x24\x10"),             /* mov [rsp+0x10], rdi */
	IS("\x48\x89\x6c\x24\x18"),             /* mov [rsp+0x18], rbp */
	IS("\x4c\x8b\x7d\x38"),                 /* mov r15, [rbp+0x38] */
	NOT("\x48\x8b\x5d\x38"),                /* mov rbx, [rbp+0x38] */
	NOT("\x4c\x8b\x7b\x38"),                /* mov r15, [rbx+0x38] */
	IS("\x4c\x2b\x7d\x28"),                 /* sub r15, [rbp+0x28] */
	NOT("\x48\x2b\x5d\x28"),                /* sub rbx, [rbp+0x28] */
	NOT("\x4c\x2b\x7b\x28"),                /* sub r15, [rbx+0x28] */
	NOT("\x4c\x03\x7d\x28"),                /* add r15, [rbp+0x28] */
	IS("\xc7\x44\x24\x14\x00\x00\x00\x00"), /* mov dword ptr [rsp+0x14], 0 */
	IS("\x44\x89\x7c\x24\x0c"),             /* mov [rsp+0xc], r15d */
	IS("\x4c\x89\x7c\x24\x20"),             /* mov [rsp+0x20], r15 */
	IS("\x48\x89\x65\x50"),                 /* mov [rbp+0x50], rsp */
	IS("\xff\xd1"),                         /* call rcx */
};

static const struct code_shape
	the_entry = { CODE_SHAPE(entry),
		      .told = { CODE_FIELD(GG_dispatch, 0x2f0, CODE_ALL),
				CODE_FIELD(L_glref, 0x10, CODE_ALL) },
		      .gap_max = 5 },
	the_ffi_callback = { CODE_SHAPE(ffi_callback), .told = { CODE_FIELD(g_ctype_state, 0x178, CODE_ALL) },
			     .needs = { &the_entry } },
	the_vmstate = { CODE_SHAPE(vmstate),
			.told = { CODE_FIELD(g_vmstate, 0x100, 2), CODE_FIELD(g_cur_L, 0x170, 3),
				  CODE_NUMBER(vmstates, 1, 0, 2) },
			.needs = { &the_entry } },
	the_hot_one = { CODE_SHAPE(hot),
			.told = { CODE_FIELD(GG_J, 0x3f0, CODE_ALL), CODE_FIELD(J_L, 0x68, CODE_ALL) },
			.needs = { &the_entry } },
	the_jloop = { CODE_SHAPE(jloop),
		      .told = { CODE_FIELD(J_trace, 0x200, CODE_ALL),
				CODE_FIELD(GCtrace_mcode, 0x40, CODE_ALL),
				CODE_FIELD(CFRAME_L, 0x10, CODE_ALL), CODE_FIELD(g_jit_base, 0x168, CODE_ALL),
				CODE_FIELD(g_tmpbuf_L, 0x290, CODE_ALL),
				CODE_NUMBER(offsets.has_jit, true, false, CODE_ALL) },
		      .needs = { &the_entry, &the_vmstate, &the_hot_one } },
	the_exits = { CODE_SHAPE(exits),
		      .told = { CODE_FIELD(J_exitno, 0x400, CODE_ALL),
				CODE_FIELD(J_parent, 0x3fc, CODE_ALL) },
		      .needs = { &the_entry, &the_vmstate, &the_hot_one } },
	the_exit_error = { CODE_SHAPE(exit_error),
			   .told = { CODE_NUMBER(exit_error_code, true, false, CODE_ALL) },
			   .needs = { &the_entry } },
	the_saveregs = { CODE_SHAPE(saveregs), .told = { CODE_FIELD(CFRAME_size, 80, CODE_ALL) },
			 .needs = { &the_entry } },
	the_saveregs_with_more = { CODE_SHAPE(saveregs_more),
				   .told = { CODE_FIELD(CFRAME_size, 80, CODE_ALL) },
				   .needs = { &the_entry } },
	the_string = { CODE_SHAPE(string),
		       .told = { CODE_FIELD(GCstr_len, 0x14, CODE_ALL),
				 CODE_FIELD(GCstr_size, 0x18, CODE_ALL) },
		       .needs = { &the_entry } },
	the_gc_check = { CODE_SHAPE(gc_check), .told = { CODE_FIELD(g_gc_total, 0x10, CODE_ALL) },
			 .needs = { &the_entry } },
	the_hook_test = { CODE_SHAPE(hook_test), .told = { CODE_FIELD(g_hookmask, 0x109, CODE_ALL) },
			  .needs = { &the_entry } },
	the_getmetatable = { CODE_SHAPE(getmetatable), .told = { CODE_FIELD(g_gcroot, 0x278, CODE_ALL) },
			     .needs = { &the_entry }, .gap_max = 39 },
	the_isnext = { CODE_SHAPE(isnext), .told = { CODE_NUMBER(op_jmp, 0x58, LAYOUT_UNKNOWN, CODE_ALL) },
		       .needs = { &the_entry }, .gap_max = 5 },
	the_exit_dispatch = { CODE_SHAPE(exit_dispatch),
			      .told = { CODE_NUMBER(op_funcf, 0x59, LAYOUT_UNKNOWN, CODE_ALL) },
			      .needs = { &the_entry }, .gap_max = 3 },
	the_resume = { CODE_SHAPE(resume),
		       .told = { CODE_FIELD(L_cframe, 0x50, 0x03), CODE_FIELD(L_status, 0xb, 0x05),
				 CODE_FIELD(L_base, 0x20, 0x0d), CODE_FIELD(L_top, 0x28, 0x1d),
				 CODE_FIELD(CFRAME_MULTRES, 4, 0x2d) },
		       .needs = { &the_entry }, .may_be_apart = true },
	the_cpcall = { CODE_SHAPE(cpcall),
		       .told = { CODE_FIELD(CFRAME_L, 0x10, 0x0f), CODE_FIELD(CFRAME_PC, 0x18, 0x0f),
				 CODE_FIELD(L_stack, 0x38, 0x0c), CODE_FIELD(L_top, 0x28, 0x0c),
				 CODE_FIELD(CFRAME_ERRF, 0x14, 0x1c), CODE_FIELD(CFRAME_NRES, 0xc, 0x2c),
				 CODE_FIELD(CFRAME_PREV, 0x20, 0x4c), CODE_FIELD(L_cframe, 0x50, 0x8c) },
		       .needs = { &the_entry }, .may_be_apart = true, .needs_room = true };

static const struct code_shape *const shapes[] = {
	&the_entry,        &the_ffi_callback, &the_vmstate,
	&the_hot_one,      &the_jloop,        &the_exits,
	&the_exit_error,   &the_saveregs,     &the_saveregs_with_more,
	&the_string,       &the_gc_check,     &the_hook_test,
	&the_getmetatable, &the_isnext,       &the_exit_dispatch,
	&the_resume,       &the_cpcall,
};

enum { SHAPES = sizeof(shapes) / sizeof(shapes[0]) };

static void each_shape_tells_its_fields_and_no_other_does(void **state)
{
	(void)state;
	code_expect_shapes(&gc64, shapes, SHAPES);
}

static struct code_bytes code;
static struct vm_code_evidence evidence;

static void add(const struct code_shape *shape)
{
	code_add_shape(&gc64, &code, shape, &(struct code_change){ 0 });
	code_add_nothing(&gc64, &code, gc64.room);
}

static void add_line(const char *bytes, size_t length)
{
	code_add(&code, &(struct code_line){ bytes, length, false });
}
#define ADD(text) add_line(text, sizeof(text) - 1)

static enum vm_code_status read_it(void)
{
	return code_read(&gc64, &code, &evidence);
}

static void add_dispatches(void)
{
	for (size_t i = 0; i < CODE_DISPATCHES * gc64.dispatch_count; i++)
		code_add(&code, &dispatch[i % gc64.dispatch_count]);
}

/* What comes first may need what comes later. */
static void a_shape_may_begin_the_code(void **state)
{
	(void)state;
	for (size_t i = 0; i < SHAPES; i++) {
		code.length = 0;
		add(shapes[i]);
		for (size_t j = 0; j < CODE_NEEDS && shapes[i]->needs[j]; j++)
			add(shapes[i]->needs[j]);
		add_dispatches();
		assert_int_equal(read_it(), VM_CODE_OK);
		for (size_t j = 0; j < CODE_TOLD && shapes[i]->told[j].size; j++)
			if (code_number(&evidence, &shapes[i]->told[j]) != shapes[i]->told[j].value)
				fail_msg("%s: number %zu", shapes[i]->name, j);
	}
}

/* A function is looked at up to a bound, and so far the code has to go on. */
static void functions_are_looked_at_from_their_first_shape_on(void **state)
{
	enum { WINDOW = 40 };
	/* The last instructions of shapes, counted from where they are looked for. */
	static const struct {
		const struct code_shape *shape;
		size_t last, distance, reach;
		size_t told; /* by the last one */
	} functions[] = { { &the_resume, 5, 5, WINDOW - 1, 4 }, { &the_cpcall, 7, 5, WINDOW - 2, 7 } };

	(void)state;
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
		for (size_t beyond = 0; beyond <= 1; beyond++) {
			const struct code_told *told = &functions[i].shape->told[functions[i].told];

			code_begin(&gc64, &code, CODE_DISPATCHES);
			add(&the_entry);
			code_add_apart(&gc64, &code, functions[i].shape, functions[i].last,
				       functions[i].reach - functions[i].distance + beyond);
			code_add_nothing(&gc64, &code, gc64.room);
			assert_int_equal(read_it(), VM_CODE_OK);
			assert_int_equal(code_number(&evidence, told), beyond ? told->unknown : told->value);
		}
	/* vm_cpcall is looked for where its window ends within the code; it has two instructions before. */
	for (size_t short_by = 0; short_by <= 1; short_by++) {
		code_begin(&gc64, &code, CODE_DISPATCHES);
		add(&the_entry);
		code_add_shape(&gc64, &code, &the_cpcall, &(struct code_change){ 0 });
		code_add_nothing(&gc64, &code, WINDOW + 2 - code_instructions(&the_cpcall) - short_by);
		assert_int_equal(read_it(), VM_CODE_OK);
		assert_int_equal(evidence.offsets.L_stack, short_by ? LAYOUT_UNKNOWN : 0x38);
	}
	/* Here it has one. */
	code.length = 0;
	for (size_t i = 1; i < the_cpcall.count; i++)
		if (!the_cpcall.lines[i].is_miss)
			code_add(&code, &the_cpcall.lines[i]);
	code_add_nothing(&gc64, &code, gc64.room);
	add(&the_entry);
	add_dispatches();
	assert_int_equal(read_it(), VM_CODE_OK);
	assert_int_equal(evidence.offsets.L_stack, LAYOUT_UNKNOWN);
}

static void an_interpreter_has_all_shapes(void **state)
{
	(void)state;
	code_begin(&gc64, &code, CODE_DISPATCHES);
	for (size_t i = 0; i < SHAPES; i++)
		add(shapes[i]);
	assert_int_equal(read_it(), VM_CODE_OK);
	assert_true(evidence.offsets.gc64);
	assert_true(evidence.offsets.has_jit);
	assert_int_equal(evidence.dispatches, CODE_DISPATCHES);
	assert_int_equal(evidence.vmstates, 1 | 1 << 7);
	assert_null(evidence.contradiction);
	for (size_t i = 0; i < SHAPES; i++)
		for (size_t j = 0; j < CODE_TOLD && shapes[i]->told[j].size; j++)
			if (shapes[i]->told[j].place != offsetof(struct vm_code_evidence, vmstates))
				assert_int_equal(code_number(&evidence, &shapes[i]->told[j]),
						 shapes[i]->told[j].value);
	/* Not each build has a compiler. */
	code_begin(&gc64, &code, CODE_DISPATCHES);
	add(&the_entry);
	assert_int_equal(read_it(), VM_CODE_OK);
	assert_false(evidence.offsets.has_jit);
}

/* In 2.0 there is one field for the thread of the compiler, and none for the current one. */
static void without_a_current_thread_the_compiler_has_its_own(void **state)
{
	(void)state;
	code_begin(&gc64, &code, CODE_DISPATCHES);
	add(&the_entry);
	add(&the_hot_one);
	add(&the_jloop);
	assert_int_equal(read_it(), VM_CODE_OK);
	assert_int_equal(evidence.offsets.g_jit_L, 0x290);
	assert_int_equal(evidence.offsets.g_tmpbuf_L, LAYOUT_UNKNOWN);
	add(&the_vmstate);
	assert_int_equal(read_it(), VM_CODE_OK);
	assert_int_equal(evidence.offsets.g_jit_L, LAYOUT_UNKNOWN);
	assert_int_equal(evidence.offsets.g_tmpbuf_L, 0x290);
}

static void a_vm_has_so_many_dispatches_of_one_mode(void **state)
{
	static const struct code_line short_ones[] = { IS("\x83\xc3\x04"), IS("\xc1\xe8\x10"),
						       IS("\x41\xff\x24\xee") };
	struct code_machine gc32 = gc64;

	(void)state;
	code_begin(&gc64, &code, VM_CODE_DISPATCHES_MIN - 1);
	add(&the_entry);
	assert_int_equal(read_it(), VM_CODE_NOT_A_VM);
	code_begin(&gc64, &code, VM_CODE_DISPATCHES_MIN);
	add(&the_entry);
	assert_int_equal(read_it(), VM_CODE_OK);
	gc32.dispatch = short_ones;
	gc32.room = 0; /* nothing is before the first one */
	code_begin(&gc32, &code, VM_CODE_DISPATCHES_MIN);
	add(&the_entry);
	assert_int_equal(read_it(), VM_CODE_OK);
	assert_false(evidence.offsets.gc64);
	assert_int_equal(evidence.dispatches, VM_CODE_DISPATCHES_MIN);
	for (size_t i = 0; i < sizeof(dispatch) / sizeof(dispatch[0]); i++)
		code_add(&code, &dispatch[i]);
	assert_int_equal(read_it(), VM_CODE_NOT_A_VM);
}

static void without_an_entry_from_c_it_is_no_vm(void **state)
{
	(void)state;
	code_begin(&gc64, &code, CODE_DISPATCHES);
	for (size_t i = 2; i < SHAPES; i++)
		add(shapes[i]);
	assert_int_equal(read_it(), VM_CODE_NOT_A_VM);
}

static void places_that_disagree_contradict(void **state)
{
	(void)state;
	code_begin(&gc64, &code, CODE_DISPATCHES);
	add(&the_entry);
	add(&the_hook_test);
	add(&the_hook_test);
	assert_int_equal(read_it(), VM_CODE_OK);
	ADD("\x41\x0f\xb6\x86\x1a\xfe\xff\xff"); /* movzx eax, byte [r14-0x1e6] */
	assert_int_equal(read_it(), VM_CODE_CONTRADICTION);
	assert_string_equal(evidence.contradiction, "g_hookmask");
	assert_int_equal(evidence.offsets.g_hookmask, 0x109); /* the first one */

	code_begin(&gc64, &code, CODE_DISPATCHES);
	add(&the_entry);
	add(&the_isnext);
	add(&the_isnext);
	assert_int_equal(read_it(), VM_CODE_OK);
	ADD("\xc6\x43\xfc\x57\xc6\x03\x52"); /* mov byte [rbx-4], 0x57; mov byte [rbx], 0x52 */
	assert_int_equal(read_it(), VM_CODE_CONTRADICTION);
	assert_string_equal(evidence.contradiction, "BC_JMP");
	/* The first contradiction is named. */
	ADD("\xc1\xe8\x10\x83\xfd\x59\x72\x00\xc1\xe8\x10\x83\xfd\x5a\x72\x00");
	assert_int_equal(read_it(), VM_CODE_CONTRADICTION);
	assert_string_equal(evidence.contradiction, "BC_JMP");
}

/* -1 is the interpreter's; there are no more than 16. */
static void states_are_small_negative_numbers(void **state)
{
	static const struct {
		uint8_t number;
		uint32_t states;
	} stores[] = { { 0xff, 1 }, { 0xfe, 2 }, { 0xf0, 1 << 15 }, { 0xef, 0 }, { 0x00, 0 }, { 0x01, 0 } };

	(void)state;
	for (size_t i = 0; i < sizeof(stores) / sizeof(stores[0]); i++) {
		/* mov [r14-0x180], rbp; mov dword [r14-0x1f0], number */
		char bytes[] = "\x49\x89\xae\x80\xfe\xff\xff\x41\xc7\x86\x10\xfe\xff\xff....";
		const int32_t number = (int8_t)stores[i].number;

		memcpy(bytes + sizeof(bytes) - 1 - sizeof(number), &number, sizeof(number));
		code_begin(&gc64, &code, CODE_DISPATCHES);
		add(&the_entry);
		add_line(bytes, sizeof(bytes) - 1);
		assert_int_equal(read_it(), VM_CODE_OK);
		assert_int_equal(evidence.vmstates, stores[i].states);
		assert_int_equal(evidence.offsets.g_vmstate, stores[i].states ? 0x100 : LAYOUT_UNKNOWN);
		/* Only beside the interpreter's it is the current thread that is stored. */
		assert_int_equal(evidence.offsets.g_cur_L, number == -1 ? 0x170 : LAYOUT_UNKNOWN);
	}
}

static void the_dispatch_of_a_handler_is_no_test_of_its_opcode(void **state)
{
	(void)state;
	code_begin(&gc64, &code, CODE_DISPATCHES);
	add(&the_entry);
	/* shr eax, 16; jmp [r14+rbp*8]; cmp ebp, 0x59; jb */
	ADD("\xc1\xe8\x10\x41\xff\x24\xee\x83\xfd\x59\x72\x00");
	assert_int_equal(read_it(), VM_CODE_OK);
	assert_int_equal(evidence.op_funcf, LAYOUT_UNKNOWN);
}

static void a_dispatch_is_found_from_any_place_before_it(void **state)
{
	const uint8_t *begin, *second;

	(void)state;
	code_begin(&gc64, &code, 2);
	begin = vm_code_x86_64_dispatch(code.bytes, code.bytes + code.length);
	assert_ptr_equal(begin, code.bytes + gc64.room + 1); /* behind the prefix */
	assert_ptr_equal(vm_code_x86_64_dispatch(begin, code.bytes + code.length), begin);
	second = vm_code_x86_64_dispatch(begin + 1, code.bytes + code.length);
	assert_ptr_equal(second, begin + 11);
	assert_null(vm_code_x86_64_dispatch(begin + 1, code.bytes + code.length - 1));
	assert_null(vm_code_x86_64_dispatch(second + 1, code.bytes + code.length));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_shape_tells_its_fields_and_no_other_does),
		cmocka_unit_test(a_shape_may_begin_the_code),
		cmocka_unit_test(functions_are_looked_at_from_their_first_shape_on),
		cmocka_unit_test(an_interpreter_has_all_shapes),
		cmocka_unit_test(without_a_current_thread_the_compiler_has_its_own),
		cmocka_unit_test(a_vm_has_so_many_dispatches_of_one_mode),
		cmocka_unit_test(without_an_entry_from_c_it_is_no_vm),
		cmocka_unit_test(places_that_disagree_contradict),
		cmocka_unit_test(states_are_small_negative_numbers),
		cmocka_unit_test(the_dispatch_of_a_handler_is_no_test_of_its_opcode),
		cmocka_unit_test(a_dispatch_is_found_from_any_place_before_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
