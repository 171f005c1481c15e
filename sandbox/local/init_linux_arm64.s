#include "textflag.h"

// The same program as init_linux_amd64.s, which explains it.
//
// Registers kept: R19 argv, R20 envp, R21 flags, R22 pid of the command, R23
// its state, R24 the scratch area. While the orders are carried out: R25 their
// calls, R23 the present one, R22 its index, R26 the orders.

#define ORDERS 0x800000

#define SYS_ioctl 29
#define SYS_write 64
#define SYS_exit_group 94
#define SYS_kill 129
#define SYS_rt_sigprocmask 135
#define SYS_rt_sigtimedwait 137
#define SYS_setsid 157
#define SYS_prctl 167
#define SYS_getpid 172
#define SYS_getppid 173
#define SYS_clone 220
#define SYS_execve 221
#define SYS_wait4 260
#define SYS_close_range 436
#define SYS_landlock_restrict_self 446

TEXT ·initProgram(SB),NOSPLIT|NOFRAME,$0
	MOVD	RSP, R9
	MOVD	0(R9), R10	// argc
	ADD	$8, R9, R19	// argv
	ADD	$16, R9, R20
	ADD	R10<<3, R20, R20	// envp
	MOVD	8(R19), R11
	MOVBU	13(R11), R21
	SUB	$97, R21, R21
	SUB	$256, R9, R24
	AND	$-16, R24, R24
	MOVD	R24, RSP

	MOVD	$4, R0	// PR_SET_DUMPABLE 0
	MOVD	$0, R1
	MOVD	$SYS_prctl, R8
	SVC
	MOVD	$15, R0	// PR_SET_NAME argv[1]
	MOVD	8(R19), R1
	MOVD	$SYS_prctl, R8
	SVC

	MOVD	$ORDERS, R26
	MOVD	8(R26), R25
	MOVD	R25, R23
	MOVD	$0, R22
order:
	MOVD	0(R26), R9
	CMP	R9, R22
	BEQ	ordered
	MOVD	56(R23), R9	// which arguments are results
	ADD	$8, R23, R10
resolve:
	CBZ	R9, call
	TBZ	$0, R9, resolved
	MOVD	0(R10), R11
	MOVD	$112, R12
	MUL	R12, R11, R11
	ADD	R25, R11, R11
	MOVD	104(R11), R11
	MOVD	R11, 0(R10)
resolved:
	LSR	$1, R9, R9
	ADD	$8, R10, R10
	B	resolve
call:
	MOVD	0(R23), R8
	MOVD	8(R23), R0
	MOVD	16(R23), R1
	MOVD	24(R23), R2
	MOVD	32(R23), R3
	MOVD	40(R23), R4
	MOVD	48(R23), R5
	SVC
	MOVD	R0, 104(R23)
	CMN	$4095, R0
	BLO	worked	// below -4095
	NEG	R0, R0
	MOVD	64(R23), R9
	CMP	R9, R0
	BNE	orderFailed
worked:
	MOVD	72(R23), R9
	CBZ	R9, compare
	MOVD	104(R23), R10
	MOVW	R10, 0(R9)
compare:
	MOVD	80(R23), R9
	MOVD	88(R23), R10
	MOVD	96(R23), R11
comparing:
	CBZ	R11, done
	SUB	$1, R11, R11
	MOVBU	(R9)(R11), R12
	MOVBU	(R10)(R11), R13
	CMP	R12, R13
	BEQ	comparing
	MOVD	$116, R0	// ESTALE
	B	orderFailed
done:
	ADD	$112, R23, R23
	ADD	$1, R22, R22
	B	order
orderFailed:
	LSL	$12, R22, R22
	ORR	R0, R22, R22
	MOVW	$5, R9
	MOVW	R9, 0(R24)
	MOVW	R22, 4(R24)
	B	failed
ordered:
	TBZ	$1, R21, start
	MOVD	$36, R0	// PR_SET_CHILD_SUBREAPER 1
	MOVD	$1, R1
	MOVD	$SYS_prctl, R8
	SVC

start:
	MOVD	$SYS_getpid, R8
	SVC
	MOVD	R0, 24(R24)
	MOVD	$0, R9
	MOVD	R9, 0(R24)	// no failure
	MOVD	$0x4111, R0	// CLONE_VFORK|CLONE_VM|SIGCHLD
	MOVD	$0, R1
	MOVD	$0, R2
	MOVD	$0, R3
	MOVD	$0, R4
	MOVD	$SYS_clone, R8
	SVC
	CBZ	R0, command
	MOVD	R0, R22
	TBZ	$63, R0, cloned
	NEG	R0, R22
	MOVW	$3, R9
	MOVW	R9, 0(R24)
	MOVW	R22, 4(R24)
	B	failed

command:
	MOVD	$SYS_setsid, R8
	SVC
	TBZ	$2, R21, bound
	MOVD	$0, R0	// TIOCSCTTY, without taking it from anybody
	MOVD	$0x540e, R1
	MOVD	$0, R2
	MOVD	$SYS_ioctl, R8
	SVC
	MOVW	$6, R23
	CBNZ	R0, commandFailed
bound:
	MOVD	$1, R0	// PR_SET_PDEATHSIG SIGKILL
	MOVD	$9, R1
	MOVD	$SYS_prctl, R8
	SVC
	MOVD	$SYS_getppid, R8
	SVC
	MOVD	24(R24), R9
	CMP	R9, R0	// the init died before it
	BNE	commandGone
	MOVD	$3, R0	// 3 and 4 on exec
	MOVD	$4, R1
	MOVD	$4, R2
	MOVD	$SYS_close_range, R8
	SVC
	MOVW	$3, R23
	CBNZ	R0, commandFailed
	TBZ	$0, R21, execute
	MOVD	$4, R0
	MOVD	$0, R1
	MOVD	$SYS_landlock_restrict_self, R8
	SVC
	MOVW	$2, R23
	CBNZ	R0, commandFailed
execute:
	MOVD	$0, R9
	MOVD	R9, 16(R24)
	MOVD	$2, R0	// SIG_SETMASK
	ADD	$16, R24, R1
	MOVD	$0, R2
	MOVD	$8, R3
	MOVD	$SYS_rt_sigprocmask, R8
	SVC
	MOVD	16(R19), R0
	ADD	$24, R19, R1
	MOVD	R20, R2
	MOVD	$ORDERS, R9
	MOVD	16(R9), R10
	CBZ	R10, program
	MOVD	R10, R0
	MOVD	24(R9), R1
	MOVD	32(R9), R2
program:
	MOVD	$SYS_execve, R8
	SVC
	MOVW	$3, R23
commandFailed:
	NEG	R0, R0
	MOVW	R23, 0(R24)
	MOVW	R0, 4(R24)
commandGone:
	MOVD	$127, R0
	MOVD	$SYS_exit_group, R8
	SVC
	B	commandGone

cloned:
	MOVWU	0(R24), R9
	CBNZ	R9, failed
	MOVW	$1, R9
	MOVW	R9, 0(R24)
	MOVW	R22, 4(R24)
	MOVD	$3, R0
	MOVD	R24, R1
	MOVD	$8, R2
	MOVD	$SYS_write, R8
	SVC
	MOVD	$0, R0
	MOVD	$2, R1
	MOVD	$0, R2
	MOVD	$SYS_close_range, R8
	SVC
	MOVD	$4, R0
	MOVD	$0xffffffff, R1
	MOVD	$0, R2
	MOVD	$SYS_close_range, R8
	SVC
	MOVD	$0, R23

next:
	MOVD	$-1, R9
	MOVD	R9, 16(R24)
	ADD	$16, R24, R0
	ADD	$32, R24, R1
	MOVD	$0, R2
	MOVD	$8, R3
	MOVD	$SYS_rt_sigtimedwait, R8
	SVC
	CMP	$0, R0
	BLE	next
	CMP	$17, R0	// SIGCHLD
	BEQ	children
	CBNZ	R23, next	// nothing to forward to
	TBNZ	$1, R21, forward	// tree mode: the sender cannot be told apart
	MOVWU	48(R24), R9	// si_pid is 0 for a sender outside the namespace
	CBNZ	R9, next
forward:
	MOVD	R0, R1
	NEG	R22, R0
	MOVD	$SYS_kill, R8
	SVC
	B	next

children:
	MOVD	$-1, R0
	ADD	$8, R24, R1
	MOVD	$1, R2	// WNOHANG
	MOVD	$0, R3
	MOVD	$SYS_wait4, R8
	SVC
	CMN	$10, R0	// ECHILD
	BEQ	childless
	CMP	$0, R0
	BLE	next
	CMP	R22, R0
	BNE	children
	CBNZ	R23, children
	MOVD	$1, R23
	MOVWU	8(R24), R9
	MOVW	$4, R10
	MOVW	R10, 0(R24)
	MOVW	R9, 4(R24)
	MOVD	$3, R0
	MOVD	R24, R1
	MOVD	$8, R2
	MOVD	$SYS_write, R8
	SVC
	TBNZ	$1, R21, children
	B	gone

childless:
	CBZ	R23, next
gone:
	MOVD	$0, R0
	MOVD	$SYS_exit_group, R8
	SVC
	B	gone

failed:
	MOVD	$3, R0
	MOVD	R24, R1
	MOVD	$8, R2
	MOVD	$SYS_write, R8
	SVC
failedGone:
	MOVD	$125, R0
	MOVD	$SYS_exit_group, R8
	SVC
	B	failedGone

	// End of the program: "confine!"
	WORD	$0x666e6f63
	WORD	$0x21656e69

// func initProgramStart() uintptr
TEXT ·initProgramStart(SB),NOSPLIT,$0-8
	MOVD	$·initProgram(SB), R0
	MOVD	R0, ret+0(FP)
	RET
