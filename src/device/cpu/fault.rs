//! What a fault says of itself, written where it outlives the process.
//!
//! The handler notes address, direction and instruction in shared memory, puts the default action back and returns:
//! the instruction runs again and the process dies of the signal it would have died of anyway. The first fault wins.

use std::io;
use std::mem;
use std::ptr;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, AtomicU64};

use super::alt_stack::install_alt_stack_for_this_thread;
use super::machine::Machine;
use crate::device::Access;

const EMPTY: u32 = 0;
const WRITING: u32 = 1;
const COMPLETE: u32 = 2;

const UNKNOWN: u32 = 0;
const READ: u32 = 1;
const WRITE: u32 = 2;

/// The signals with which a wrong access ends. On x86-64 a non-canonical address gives SIGBUS where the access goes
/// through the stack or frame pointer, and SIGSEGV elsewhere.
const SIGNALS: [libc::c_int; 2] = [libc::SIGSEGV, libc::SIGBUS];

/// `si_code` of a signal that the kernel raised without an address (asm-generic/siginfo.h).
const SI_KERNEL: i32 = 0x80;

/// Where the handler writes.
static RECORD: AtomicPtr<FaultRecord> = AtomicPtr::new(ptr::null_mut());

/// One fault, in memory that the dying process shares with whoever wants to know. All zero bytes is "no fault yet".
#[repr(C)]
#[derive(Debug, Default)]
pub struct FaultRecord {
    /// 0 none, 1 being written, 2 complete.
    state: AtomicU32,
    signal: AtomicI32,
    address: AtomicU64,
    pc: AtomicU64,
    address_known: AtomicU32,
    /// 0 unknown, 1 read, 2 write.
    access: AtomicU32,
    si_code: AtomicI32,
    thread: AtomicI32,
}

/// What is known of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The first byte of the access that could not be touched. None for a non-canonical address, which the processor
    /// does not report, and for a signal that somebody sent.
    pub address: Option<u64>,
    /// None where the system does not say, and for a jump to an address that cannot be run.
    pub access: Option<Access>,
    /// Address of the faulting instruction; 0 for a signal that somebody sent, and where the system does not say.
    pub pc: u64,
    pub signal: i32,
    /// Above zero from the kernel, else from a process.
    pub si_code: i32,
    /// Kernel id of the thread that faulted.
    pub thread: i32,
}

impl FaultRecord {
    /// The fault, if one was recorded to its end.
    pub fn read(&self) -> Option<Fault> {
        if self.state.load(Acquire) != COMPLETE {
            return None;
        }
        let address = self.address.load(Relaxed);
        Some(Fault {
            address: (self.address_known.load(Relaxed) != 0).then_some(address),
            access: match self.access.load(Relaxed) {
                READ => Some(Access::Read),
                WRITE => Some(Access::Write),
                _ => None,
            },
            pc: self.pc.load(Relaxed),
            signal: self.signal.load(Relaxed),
            si_code: self.si_code.load(Relaxed),
            thread: self.thread.load(Relaxed),
        })
    }

    /// Forgets the fault, for the next process.
    pub fn clear(&self) {
        self.state.store(EMPTY, Release);
    }

    /// Records a fault, unless another came first. Runs in the handler: no heap, no locks, no panics.
    fn write(&self, fault: &Fault) {
        if self.state.compare_exchange(EMPTY, WRITING, Acquire, Relaxed).is_err() {
            wait_to_die();
            return;
        }
        self.signal.store(fault.signal, Relaxed);
        self.address.store(fault.address.unwrap_or(0), Relaxed);
        self.address_known.store(fault.address.is_some().into(), Relaxed);
        let access = match fault.access {
            Some(Access::Read) => READ,
            Some(Access::Write) => WRITE,
            None => UNKNOWN,
        };
        self.access.store(access, Relaxed);
        self.pc.store(fault.pc, Relaxed);
        self.si_code.store(fault.si_code, Relaxed);
        self.thread.store(fault.thread, Relaxed);
        self.state.store(COMPLETE, Release);
    }
}

/// Why the handler could not be installed.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    #[error("failed to map a stack for the fault handler: raise the limits that `ulimit -v` and `ulimit -d` show")]
    Stack(#[source] io::Error),
    #[error("failed to switch to a stack for the fault handler: call this outside signal handlers")]
    Switch(#[source] io::Error),
    #[error("failed to handle signal {signal}: check that the system lets this process set signal actions")]
    Action { signal: i32, source: io::Error },
}

/// Clears `record` and writes the first SIGSEGV or SIGBUS of this process there, before the process dies of it. The
/// calling thread gets an alternate stack, so that a stack overflow is recorded too.
///
/// # Errors
/// The system refused a stack or a signal action.
///
/// # Safety
/// `record` is aligned and stays mapped for reading and writing until the process ends; others look at it only through
/// a shared reference.
pub unsafe fn install(record: *mut FaultRecord) -> Result<(), InstallError> {
    install_alt_stack_for_this_thread()?;
    // SAFETY: the caller promises a valid record, and all zero bytes or what an earlier process left are valid in it.
    unsafe { &*record }.clear();
    RECORD.store(record, Release);
    arm()
}

/// Puts the handler in place again, in case that a library has put one of its own there since [`install`].
///
/// # Errors
/// The system refused a signal action.
pub fn arm() -> Result<(), InstallError> {
    for signal in SIGNALS {
        // Without SA_NODEFER and with both signals held back, a fault of the handler itself ends the process at once.
        set_action(signal, handle as *const () as usize, libc::SA_SIGINFO | libc::SA_ONSTACK)
            .map_err(|source| InstallError::Action { signal, source })?;
    }
    Ok(())
}

fn set_action(signal: libc::c_int, handler: usize, flags: libc::c_int) -> io::Result<()> {
    // SAFETY: `sigaction` is plain data, for which zero bytes are valid: no flags, an empty mask.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    action.sa_sigaction = handler;
    action.sa_flags = flags;
    for masked in SIGNALS {
        // SAFETY: the mask is valid, and so are the two signal numbers.
        unsafe { libc::sigaddset(&mut action.sa_mask, masked) };
    }
    // SAFETY: `handler` is SIG_DFL or `handle`, which has the signature that SA_SIGINFO asks for and does only what a
    // signal handler may do.
    match unsafe { libc::sigaction(signal, &action, ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The handler. Only calls that POSIX allows in one, or bare system calls.
extern "C" fn handle(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid `siginfo_t` to an SA_SIGINFO handler.
    let si_code = unsafe { (*info).si_code };
    let synchronous = is_synchronous(signal, si_code);
    // SAFETY: takes no pointers.
    let thread = unsafe { libc::syscall(libc::SYS_gettid) } as i32;
    let mut fault = Fault { address: None, access: None, pc: 0, signal, si_code, thread };
    if synchronous {
        // SAFETY: the kernel passes the interrupted thread's `ucontext_t` to an SA_SIGINFO handler.
        let machine = unsafe { Machine::read(context.cast()) };
        // SAFETY: the kernel fills the address in for every SIGSEGV and SIGBUS that it raises itself.
        let address = unsafe { (*info).si_addr() }.addr() as u64;
        fault.address = (si_code != SI_KERNEL && machine.tells(address)).then_some(address);
        fault.access = machine.access;
        fault.pc = machine.pc;
    }
    // SAFETY: `install` stored a record that stays mapped until the process ends.
    if let Some(record) = unsafe { RECORD.load(Acquire).as_ref() } {
        record.write(&fault);
    }
    for signal in SIGNALS {
        // It cannot fail for these signals; if it did, nothing better could be done here.
        let _ = set_action(signal, libc::SIG_DFL, 0);
    }
    if !synchronous {
        // No instruction will fault again. The signal is held back while the handler runs, and ends the process as it
        // returns.
        // SAFETY: takes no pointers.
        unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, signal) };
    }
}

/// Whether an instruction raised the signal and will raise it again: not what a process sent, nor the kernel's news of
/// a broken page (BUS_MCEERR_AO) or of a wrong memory tag noticed late (SEGV_MTEAERR).
fn is_synchronous(signal: i32, si_code: i32) -> bool {
    const BUS_MCEERR_AO: i32 = 5;
    const SEGV_MTEAERR: i32 = 8;
    si_code > 0
        && (signal, si_code) != (libc::SIGBUS, BUS_MCEERR_AO)
        && (signal, si_code) != (libc::SIGSEGV, SEGV_MTEAERR)
}

/// Another thread faulted first. It writes its record and ends the process, so stand still for it; should it be stuck,
/// go on and die after about a second.
fn wait_to_die() {
    let mut pause = libc::timespec { tv_sec: 1, tv_nsec: 0 };
    let pause = &raw mut pause;
    // SAFETY: the pointer is valid and may be given twice. Interrupted, the call leaves the rest of the time there.
    while unsafe { libc::nanosleep(pause, pause) } != 0 {}
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::hint::black_box;
    use std::os::fd::{AsRawFd, FromRawFd};

    use super::super::system::page_bytes;
    use super::super::test_child::{Child, read_byte, write_byte};
    use super::*;
    use crate::device::Arena;
    use crate::device::cpu::CpuArena;

    fn splitmix(state: &mut u64) -> u64 {
        *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    #[test]
    fn loads_and_stores_anywhere_in_an_arena_name_their_address() {
        let arena = CpuArena::reserve(16 << 40, 1 << 40).unwrap();
        let child = Child::new();
        let mut state = 1;
        for _ in 0..1000 {
            let address = arena.base() + splitmix(&mut state) % arena.len();
            let fault = child.fault(|| read_byte(address));
            assert_eq!((fault.address, fault.access), (Some(address), Some(Access::Read)));
            let fault = child.fault(|| write_byte(address, 1));
            assert_eq!((fault.address, fault.access), (Some(address), Some(Access::Write)));
            assert_eq!(fault.signal, libc::SIGSEGV);
            assert!(fault.si_code > 0);
        }
    }

    #[test]
    fn the_instruction_lies_in_the_function_that_faulted() {
        let fault = Child::new().fault(|| write_byte(8, 1));
        let distance = fault.pc.wrapping_sub(write_byte as *const () as usize as u64);
        assert!(distance < 4096, "{distance}");
        assert_eq!(fault.address, Some(8));
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn a_non_canonical_address_stays_unknown() {
        let fault = Child::new().fault(|| read_byte(0x1234_5678_9ABC_DEF0));
        assert_eq!((fault.address, fault.access), (None, None));
        assert_eq!((fault.signal, fault.si_code), (libc::SIGSEGV, SI_KERNEL));
        assert_ne!(fault.pc, 0);
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn a_non_canonical_address_by_the_stack_pointer_stays_unknown() {
        let fault = Child::new().fault(|| {
            // SAFETY: the load faults, in a child that dies of it, as it should.
            unsafe { std::arch::asm!("mov {0}, [rsp + {0}]", inout(reg) 0x1234_u64 << 48 => _) };
        });
        assert_eq!((fault.address, fault.access), (None, None));
        assert_eq!(fault.signal, libc::SIGBUS);
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn a_kernel_address_is_known() {
        let fault = Child::new().fault(|| write_byte(0xFFFF_8000_0000_1234, 1));
        assert_eq!((fault.address, fault.access), (Some(0xFFFF_8000_0000_1234), Some(Access::Write)));
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn a_jump_to_nowhere_is_neither_read_nor_write() {
        // SAFETY: a pointer to a function is never looked into before it is called, which happens in a child that dies.
        let nowhere = black_box(unsafe { mem::transmute::<usize, extern "C" fn()>(0x1000) });
        let fault = Child::new().fault(|| nowhere());
        assert_eq!((fault.address, fault.access, fault.pc), (Some(0x1000), None, 0x1000));
    }

    #[test]
    fn a_page_past_the_end_of_a_file_names_its_address() {
        // SAFETY: the name is a C string.
        let descriptor = unsafe { libc::memfd_create(c"short".as_ptr(), 0) };
        // SAFETY: the descriptor is new and nobody else's.
        let file = unsafe { File::from_raw_fd(descriptor) };
        let bytes = 2 * page_bytes() as usize;
        // SAFETY: without MAP_FIXED the kernel picks addresses that nothing uses.
        let mapping = unsafe {
            libc::mmap(
                ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        assert_ne!(mapping, libc::MAP_FAILED);
        let address = mapping.expose_provenance() as u64 + page_bytes() + 3;
        let fault = Child::new().fault(|| write_byte(address, 1));
        assert_eq!((fault.signal, fault.address), (libc::SIGBUS, Some(address)));
        assert_eq!(fault.access, Some(Access::Write));
    }

    #[test]
    fn a_signal_from_outside_claims_no_address() {
        for signal in SIGNALS {
            let fault = Child::new().killed_by(signal);
            assert_eq!((fault.address, fault.access, fault.pc), (None, None, 0));
            assert_eq!(fault.signal, signal);
            assert!(fault.si_code <= 0);
        }
    }

    #[test]
    fn a_thread_without_alternate_stack_is_recorded() {
        let fault = Child::new().fault(|| {
            let thread = std::thread::spawn(|| {
                let none = libc::stack_t { ss_sp: ptr::null_mut(), ss_flags: libc::SS_DISABLE, ss_size: 0 };
                // SAFETY: this thread runs no handler now.
                assert_eq!(unsafe { libc::sigaltstack(&none, ptr::null_mut()) }, 0);
                write_byte(0x2_0001, 1);
            });
            drop(thread.join());
        });
        assert_eq!((fault.address, fault.access), (Some(0x2_0001), Some(Access::Write)));
    }

    #[test]
    fn a_stack_overflow_is_recorded() {
        #[allow(unconditional_recursion)]
        fn deeper(depth: u64) -> u64 {
            let frame = black_box([depth; 64]);
            deeper(depth + 1) + frame[black_box(1)]
        }
        let fault = Child::new().fault(|| deeper(black_box(0)));
        assert_eq!(fault.access, Some(Access::Write));
        assert_eq!(fault.signal, libc::SIGSEGV);
    }

    #[test]
    fn the_first_of_many_faults_is_recorded_whole() {
        let child = Child::new();
        for _ in 0..100 {
            let fault = child.fault(|| {
                let threads: Vec<_> = (1..=8_u64)
                    .map(|index| {
                        std::thread::spawn(move || {
                            if index.is_multiple_of(2) {
                                write_byte(index << 12, 1);
                            } else {
                                read_byte(index << 12);
                            }
                        })
                    })
                    .collect();
                threads.into_iter().for_each(|thread| drop(thread.join()));
            });
            let index = fault.address.unwrap() >> 12;
            let access = if index.is_multiple_of(2) { Access::Write } else { Access::Read };
            assert!((1..=8).contains(&index));
            assert_eq!(fault.access, Some(access));
        }
    }

    #[test]
    fn a_record_says_nothing_until_it_is_complete() {
        let record = FaultRecord::default();
        assert_eq!(record.read(), None);
        record.state.store(WRITING, Relaxed);
        assert_eq!(record.read(), None);
        record.clear();
        let fault = Fault { address: Some(0), access: Some(Access::Read), pc: 1, signal: 11, si_code: 1, thread: 2 };
        record.write(&fault);
        assert_eq!(record.read(), Some(fault));
        record.clear();
        assert_eq!(record.read(), None);
    }
}
