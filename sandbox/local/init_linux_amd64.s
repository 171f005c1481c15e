#include "textflag.h"

// The program of a run's init: PID 1 of its PID namespace or, without one, a
// subreaper. It is never called: its bytes are copied into an ELF image in
// memory and executed (initimage_linux.go). It holds no memory but its stack,
// opens nothing, and does this:
//
//   1. become non-dumpable, so that nothing in the run can look into it;
//   2. make the calls of its orders (orders_linux.go), which lie in the image;
//   3. vfork the command: own session, its terminal if asked, death signal (and a look whether it
//      came too late), Landlock if asked, an empty signal mask,
//      execve(argv[2], argv+3, envp) or what the orders say;
//   4. write a record to descriptor 3: started with its pid, or which of
//      Landlock (2), execve (3), the terminal (6) and the orders (5) failed with
//      which errno;
//   5. close everything but descriptor 3;
//   6. for ever: take a signal. Reap on SIGCHLD; when the command ended write
//      its wait status, then end (which ends the PID namespace) or, in tree
//      mode, stay until no child is left. Forward every other signal that
//      comes from outside to the command's process group.
//
// All signals are blocked by whoever executes it, or by its orders. argv[1] is
// "confine-init:X:…" where X-'a' holds the flags: 1 Landlock ruleset in
// descriptor 4; 2 tree mode; 4 descriptor 0 is the command's terminal.
//
// A record is two native-endian 32-bit numbers: kind and value. Kinds: 1
// started (pid), 2 Landlock failed (errno), 3 execve failed (errno), 4 ended
// (wait status), 5 a call of the orders failed (its index * 4096 + errno), 6 the
// terminal failed (errno).
//
// Registers kept: R12 argv, R13 envp, R14 flags, R15 pid of the command, BX
// its state (0 running, 1 ended). Scratch on the stack, from R9 up:
// 0 record, 8 wait status, 16 signal set, 24 own pid, 32 siginfo. While the
// orders are carried out: BX the present call, R15 its index.

#define ORDERS 0x800000

#define SYS_write 1
#define SYS_rt_sigprocmask 14
#define SYS_ioctl 16
#define SYS_getpid 39
#define SYS_clone 56
#define SYS_execve 59
#define SYS_wait4 61
#define SYS_kill 62
#define SYS_getppid 110
#define SYS_setsid 112
#define SYS_rt_sigtimedwait 128
#define SYS_prctl 157
#define SYS_exit_group 231
#define SYS_close_range 436
#define SYS_landlock_restrict_self 446

TEXT ·initProgram(SB),NOSPLIT|NOFRAME,$0
	MOVQ	0(SP), AX	// argc
	LEAQ	8(SP), R12	// argv
	LEAQ	16(SP)(AX*8), R13	// envp
	MOVQ	8(R12), BX
	MOVBLZX	13(BX), R14
	SUBL	$97, R14
	SUBQ	$256, SP
	ANDQ	$-16, SP
	MOVQ	SP, R9

	MOVQ	$SYS_prctl, AX	// PR_SET_DUMPABLE 0
	MOVQ	$4, DI
	MOVQ	$0, SI
	SYSCALL
	MOVQ	$SYS_prctl, AX	// PR_SET_NAME argv[1]
	MOVQ	$15, DI
	MOVQ	8(R12), SI
	SYSCALL

	MOVQ	$ORDERS, CX
	MOVQ	8(CX), BX
	MOVQ	$0, R15
order:
	MOVQ	$ORDERS, CX
	CMPQ	R15, 0(CX)
	JEQ	ordered
	MOVQ	56(BX), DX	// which arguments are results
	MOVQ	$0, AX
resolve:
	TESTQ	DX, DX
	JZ	call
	SHRQ	$1, DX
	JCC	resolved
	MOVQ	8(BX)(AX*8), CX
	IMULQ	$112, CX
	MOVQ	$ORDERS, SI
	ADDQ	8(SI), CX
	MOVQ	104(CX), CX
	MOVQ	CX, 8(BX)(AX*8)
resolved:
	INCQ	AX
	JMP	resolve
call:
	MOVQ	0(BX), AX
	MOVQ	8(BX), DI
	MOVQ	16(BX), SI
	MOVQ	24(BX), DX
	MOVQ	32(BX), R10
	MOVQ	40(BX), R8
	MOVQ	48(BX), R9
	SYSCALL
	MOVQ	AX, 104(BX)
	CMPQ	AX, $-4095
	JCS	worked
	NEGQ	AX
	CMPQ	AX, 64(BX)
	JNE	orderFailed
worked:
	MOVQ	72(BX), CX
	TESTQ	CX, CX
	JZ	compare
	MOVQ	104(BX), AX
	MOVL	AX, (CX)
compare:
	MOVQ	80(BX), SI
	MOVQ	88(BX), DI
	MOVQ	96(BX), CX
comparing:
	TESTQ	CX, CX
	JZ	done
	MOVBLZX	-1(SI)(CX*1), AX
	MOVBLZX	-1(DI)(CX*1), DX
	DECQ	CX
	CMPL	AX, DX
	JEQ	comparing
	MOVQ	$116, AX	// ESTALE
	JMP	orderFailed
done:
	ADDQ	$112, BX
	INCQ	R15
	JMP	order
orderFailed:
	SHLQ	$12, R15
	ORQ	AX, R15
	MOVQ	SP, R9
	MOVL	$5, 0(R9)
	MOVL	R15, 4(R9)
	JMP	failed
ordered:
	MOVQ	SP, R9
	TESTL	$2, R14
	JZ	start
	MOVQ	$SYS_prctl, AX	// PR_SET_CHILD_SUBREAPER 1
	MOVQ	$36, DI
	MOVQ	$1, SI
	SYSCALL

start:
	MOVQ	$SYS_getpid, AX
	SYSCALL
	MOVQ	AX, 24(R9)
	MOVQ	$0, 0(R9)	// no failure
	MOVQ	$SYS_clone, AX	// CLONE_VFORK|CLONE_VM|SIGCHLD
	MOVQ	$0x4111, DI
	MOVQ	$0, SI
	MOVQ	$0, DX
	MOVQ	$0, R10
	MOVQ	$0, R8
	SYSCALL
	TESTQ	AX, AX
	JZ	command
	MOVQ	AX, R15
	JNS	cloned
	NEGQ	R15
	MOVL	$3, 0(R9)
	MOVL	R15, 4(R9)
	JMP	failed

command:
	MOVQ	$SYS_setsid, AX
	SYSCALL
	TESTL	$4, R14
	JZ	bound
	MOVQ	$SYS_ioctl, AX	// TIOCSCTTY, without taking it from anybody
	MOVQ	$0, DI
	MOVQ	$0x540e, SI
	MOVQ	$0, DX
	SYSCALL
	MOVL	$6, BX
	TESTQ	AX, AX
	JNZ	commandFailed
bound:
	MOVQ	$SYS_prctl, AX	// PR_SET_PDEATHSIG SIGKILL
	MOVQ	$1, DI
	MOVQ	$9, SI
	SYSCALL
	MOVQ	$SYS_getppid, AX
	SYSCALL
	CMPQ	AX, 24(R9)	// the init died before it
	JNE	commandGone
	MOVQ	$SYS_close_range, AX	// 3 and 4 on exec
	MOVQ	$3, DI
	MOVQ	$4, SI
	MOVQ	$4, DX
	SYSCALL
	MOVL	$3, BX
	TESTQ	AX, AX
	JNZ	commandFailed
	TESTL	$1, R14
	JZ	execute
	MOVQ	$SYS_landlock_restrict_self, AX
	MOVQ	$4, DI
	MOVQ	$0, SI
	SYSCALL
	MOVL	$2, BX
	TESTQ	AX, AX
	JNZ	commandFailed
execute:
	MOVQ	$0, 16(R9)
	MOVQ	$SYS_rt_sigprocmask, AX	// SIG_SETMASK
	MOVQ	$2, DI
	LEAQ	16(R9), SI
	MOVQ	$0, DX
	MOVQ	$8, R10
	SYSCALL
	MOVQ	16(R12), DI
	LEAQ	24(R12), SI
	MOVQ	R13, DX
	MOVQ	$ORDERS, CX
	CMPQ	16(CX), $0
	JEQ	program
	MOVQ	16(CX), DI
	MOVQ	24(CX), SI
	MOVQ	32(CX), DX
program:
	MOVQ	$SYS_execve, AX
	SYSCALL
	MOVL	$3, BX
commandFailed:
	NEGQ	AX
	MOVL	BX, 0(R9)
	MOVL	AX, 4(R9)
commandGone:
	MOVQ	$SYS_exit_group, AX
	MOVQ	$127, DI
	SYSCALL
	JMP	commandGone

cloned:
	CMPL	0(R9), $0
	JNE	failed
	MOVL	$1, 0(R9)
	MOVL	R15, 4(R9)
	MOVQ	$SYS_write, AX
	MOVQ	$3, DI
	MOVQ	R9, SI
	MOVQ	$8, DX
	SYSCALL
	MOVQ	$SYS_close_range, AX
	MOVQ	$0, DI
	MOVQ	$2, SI
	MOVQ	$0, DX
	SYSCALL
	MOVQ	$SYS_close_range, AX
	MOVQ	$4, DI
	MOVL	$0xffffffff, SI
	MOVQ	$0, DX
	SYSCALL
	MOVL	$0, BX

next:
	MOVQ	$-1, 16(R9)
	MOVQ	$SYS_rt_sigtimedwait, AX
	LEAQ	16(R9), DI
	LEAQ	32(R9), SI
	MOVQ	$0, DX
	MOVQ	$8, R10
	SYSCALL
	TESTQ	AX, AX
	JLE	next
	CMPQ	AX, $17	// SIGCHLD
	JEQ	children
	TESTL	BX, BX	// nothing to forward to
	JNZ	next
	TESTL	$2, R14	// tree mode: the sender cannot be told apart
	JNZ	forward
	CMPL	48(R9), $0	// si_pid is 0 for a sender outside the namespace
	JNE	next
forward:
	MOVQ	AX, SI
	MOVQ	R15, DI
	NEGQ	DI
	MOVQ	$SYS_kill, AX
	SYSCALL
	JMP	next

children:
	MOVQ	$SYS_wait4, AX
	MOVQ	$-1, DI
	LEAQ	8(R9), SI
	MOVQ	$1, DX	// WNOHANG
	MOVQ	$0, R10
	SYSCALL
	CMPQ	AX, $-10	// ECHILD
	JEQ	childless
	TESTQ	AX, AX
	JLE	next
	CMPQ	AX, R15
	JNE	children
	TESTL	BX, BX
	JNZ	children
	MOVL	$1, BX
	MOVL	8(R9), AX
	MOVL	$4, 0(R9)
	MOVL	AX, 4(R9)
	MOVQ	$SYS_write, AX
	MOVQ	$3, DI
	MOVQ	R9, SI
	MOVQ	$8, DX
	SYSCALL
	TESTL	$2, R14
	JNZ	children
	JMP	gone

childless:
	TESTL	BX, BX
	JZ	next
gone:
	MOVQ	$SYS_exit_group, AX
	MOVQ	$0, DI
	SYSCALL
	JMP	gone

failed:
	MOVQ	$SYS_write, AX
	MOVQ	$3, DI
	MOVQ	R9, SI
	MOVQ	$8, DX
	SYSCALL
failedGone:
	MOVQ	$SYS_exit_group, AX
	MOVQ	$125, DI
	SYSCALL
	JMP	failedGone

	// End of the program: "confine!"
	BYTE $0x63; BYTE $0x6f; BYTE $0x6e; BYTE $0x66
	BYTE $0x69; BYTE $0x6e; BYTE $0x65; BYTE $0x21

// func initProgramStart() uintptr
TEXT ·initProgramStart(SB),NOSPLIT,$0-8
	LEAQ	·initProgram(SB), AX
	MOVQ	AX, ret+0(FP)
	RET
