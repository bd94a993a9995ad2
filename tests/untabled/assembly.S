/* SPDX-License-Identifier: MIT */
/*
 * Functions without call frame information that keep their caller's registers on
 * the stack, and use them for other things meanwhile. Each is a lua_CFunction
 * without results, and may be called through the FFI as well.
 */
#define ROUNDS 200000

	.text

	.globl	walk
	.type	walk, @function
walk:	push	%rbp
	push	%rbx
	push	%r12
	sub	$40, %rsp
	mov	$8, %r12d
1:	call	step
	dec	%r12d
	jnz	1b
	xor	%eax, %eax
	add	$40, %rsp
	pop	%r12
	pop	%rbx
	pop	%rbp
	ret
	.size	walk, . - walk

	.type	step, @function
step:	push	%rbp
	mov	%rsp, %rbp
	push	%rbx
	and	$-64, %rsp
	sub	$256, %rsp
	xor	%ebx, %ebx
2:	inc	%ebx
	mov	%rbx, 8(%rsp)
	cmp	$ROUNDS, %ebx
	jne	2b
	lea	-8(%rbp), %rsp
	pop	%rbx
	pop	%rbp
	ret
	.size	step, . - step

/* As compilers check a stack: the last instruction is a call that does not return, and another function follows. */
	.globl	guard
	.type	guard, @function
guard:	push	%rbp
	push	%rbx
	sub	$24, %rsp
	mov	%rsp, 8(%rsp)
	call	step
	cmp	%rsp, 8(%rsp)
	jne	4f
	xor	%eax, %eax
	add	$24, %rsp
	pop	%rbx
	pop	%rbp
	ret
4:	call	fail
	.size	guard, . - guard

	.type	unused, @function
unused:	push	%rbx
	pop	%rbx
	ret
	.size	unused, . - unused

	.type	fail, @function
fail:	ud2
	.size	fail, . - fail

/* It goes back by an address that it has reckoned: what it does tells nobody where that is. */
	.globl	hide
	.type	hide, @function
hide:	push	%rbp
	push	%rbx
	xor	%ebp, %ebp
	xor	%ebx, %ebx
3:	inc	%ebx
	cmp	$ROUNDS, %ebx
	jne	3b
	xor	%eax, %eax
	pop	%rbx
	pop	%rbp
	pop	%rdx
	not	%rdx
	not	%rdx
	jmp	*%rdx
	.size	hide, . - hide

	.section .note.GNU-stack, "", @progbits
