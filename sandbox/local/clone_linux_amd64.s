#include "textflag.h"

#define SYS_clone 56
#define SYS_exit_group 231

// The return address is copied off the stack before the call and put back
// after it, because the child runs first and on the same stack: whatever it
// calls next overwrites that place.

// func vforkClone(flags uintptr, pidfd *int32) (r uintptr)
TEXT ·vforkClone(SB),NOSPLIT|NOFRAME,$0-24
	MOVQ	flags+0(FP), DI
	MOVQ	$0, SI
	MOVQ	pidfd+8(FP), DX
	MOVQ	$0, R10
	MOVQ	$0, R8
	MOVQ	$0, R9
	MOVQ	$SYS_clone, AX
	MOVQ	0(SP), R12
	SYSCALL
	MOVQ	R12, 0(SP)
	MOVQ	AX, r+16(FP)
	RET

// func vforkOnward(flags uintptr, pid *int32) (errno uintptr)
TEXT ·vforkOnward(SB),NOSPLIT|NOFRAME,$0-24
	MOVQ	flags+0(FP), DI
	MOVQ	pid+8(FP), R13
	MOVQ	$0, SI
	MOVQ	$0, DX
	MOVQ	$0, R10
	MOVQ	$0, R8
	MOVQ	$0, R9
	MOVQ	$SYS_clone, AX
	MOVQ	0(SP), R12
	SYSCALL
	TESTQ	AX, AX
	JZ	child
	JS	failed
	MOVL	AX, (R13)
	MOVQ	$0, DI
gone:
	MOVQ	$SYS_exit_group, AX
	SYSCALL
	JMP	gone
failed:
	NEGQ	AX
	MOVQ	R12, 0(SP)
	MOVQ	AX, errno+16(FP)
	RET
child:
	MOVQ	R12, 0(SP)
	MOVQ	$0, errno+16(FP)
	RET
