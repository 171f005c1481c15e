#include "textflag.h"

#define SYS_clone 220
#define SYS_exit_group 94

// Nothing lies on the stack between call and return: the return address stays
// in R30, which the kernel preserves for parent and child alike.

// func vforkClone(flags uintptr, pidfd *int32) (r uintptr)
TEXT ·vforkClone(SB),NOSPLIT|NOFRAME,$0-24
	MOVD	flags+0(FP), R0
	MOVD	$0, R1
	MOVD	pidfd+8(FP), R2
	MOVD	$0, R3
	MOVD	$0, R4
	MOVD	$SYS_clone, R8
	SVC
	MOVD	R0, r+16(FP)
	RET

// func vforkOnward(flags uintptr, pid *int32) (errno uintptr)
TEXT ·vforkOnward(SB),NOSPLIT|NOFRAME,$0-24
	MOVD	flags+0(FP), R0
	MOVD	pid+8(FP), R9
	MOVD	$0, R1
	MOVD	$0, R2
	MOVD	$0, R3
	MOVD	$0, R4
	MOVD	$SYS_clone, R8
	SVC
	CBZ	R0, child
	TBNZ	$63, R0, failed
	MOVW	R0, (R9)
gone:
	MOVD	$0, R0
	MOVD	$SYS_exit_group, R8
	SVC
	B	gone
failed:
	NEG	R0, R0
	MOVD	R0, errno+16(FP)
	RET
child:
	MOVD	$0, errno+16(FP)
	RET
