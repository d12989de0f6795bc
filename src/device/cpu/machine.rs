//! What the processor says of a fault, from the context that the kernel passes to a signal handler.

use crate::device::Access;

/// The registers of interest at a fault.
pub(super) struct Machine {
    /// Address of the instruction; 0 where unknown.
    pub(super) pc: u64,
    pub(super) access: Option<Access>,
    /// Whether this kind of fault comes with an address at all.
    has_address: bool,
}

impl Machine {
    /// Reads the context of a signal that an instruction raised.
    ///
    /// # Safety
    /// `context` is what the kernel passed to an SA_SIGINFO handler that has not returned yet.
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    pub(super) unsafe fn read(context: *const libc::ucontext_t) -> Machine {
        // Intel SDM volume 3, 6.15, "Interrupt 14: Page-Fault Exception". No other exception reports an address.
        const PAGE_FAULT: i64 = 14;
        const ERROR_WRITE: i64 = 1 << 1;
        const ERROR_FETCH: i64 = 1 << 4;
        // SAFETY: the caller promises a valid context.
        let registers = unsafe { &(*context).uc_mcontext.gregs };
        let has_address = registers[libc::REG_TRAPNO as usize] == PAGE_FAULT;
        let error = registers[libc::REG_ERR as usize];
        let access = match () {
            () if !has_address || error & ERROR_FETCH != 0 => None,
            () if error & ERROR_WRITE != 0 => Some(Access::Write),
            () => Some(Access::Read),
        };
        Machine { pc: registers[libc::REG_RIP as usize] as u64, access, has_address }
    }

    /// Reads the context of a signal that an instruction raised. It compiles, but no test has run on this processor.
    ///
    /// # Safety
    /// `context` is what the kernel passed to an SA_SIGINFO handler that has not returned yet.
    #[cfg(all(target_arch = "aarch64", target_os = "linux"))]
    pub(super) unsafe fn read(context: *const libc::ucontext_t) -> Machine {
        // Arm ARM, ESR_EL1: exception class in bits 31 to 26, for a data abort "write, not read" in bit 6, and in bit 8
        // cache maintenance, for which bit 6 is always set.
        const DATA_ABORT_LOWER_LEVEL: u64 = 0x24;
        const WRITE_NOT_READ: u64 = 1 << 6;
        const CACHE_MAINTENANCE: u64 = 1 << 8;
        // SAFETY: the caller promises a valid context.
        let (pc, syndrome) = unsafe {
            let machine = &raw const (*context).uc_mcontext;
            ((*machine).pc, exception_syndrome(machine.cast()))
        };
        let access = syndrome
            .filter(|esr| esr >> 26 & 0x3F == DATA_ABORT_LOWER_LEVEL && esr & CACHE_MAINTENANCE == 0)
            .map(|esr| if esr & WRITE_NOT_READ != 0 { Access::Write } else { Access::Read });
        Machine { pc, access, has_address: true }
    }

    /// Reads the context of a signal that an instruction raised: nothing is known of it on this processor.
    ///
    /// # Safety
    /// None needed here.
    #[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), target_os = "linux")))]
    pub(super) unsafe fn read(_context: *const libc::ucontext_t) -> Machine {
        Machine { pc: 0, access: None, has_address: true }
    }

    /// Whether the reported address can be the one that was touched. On x86-64 its bits 63 to 56 are alike: anything else
    /// never reaches the page tables (five levels; with four the processor is stricter itself).
    pub(super) fn tells(&self, address: u64) -> bool {
        self.has_address && (!cfg!(target_arch = "x86_64") || matches!((address as i64) >> 56, 0 | -1))
    }
}

/// The record `esr_context` among those that follow the registers (Linux, arch/arm64/include/uapi/asm/sigcontext.h: a
/// 32-bit magic, a 32-bit size that counts both, then the value; a magic of 0 ends the list).
///
/// # Safety
/// `machine` is the `sigcontext` of a signal that is being handled.
#[cfg(all(target_arch = "aarch64", target_os = "linux"))]
unsafe fn exception_syndrome(machine: *const u8) -> Option<u64> {
    // fault_address, regs[31], sp, pc and pstate are 280 bytes; the records are aligned to 16.
    const RECORDS: usize = 288;
    const RECORDS_BYTES: usize = 4096;
    const ESR_MAGIC: u32 = 0x4553_5201;
    let mut at = 0;
    while at + 16 <= RECORDS_BYTES {
        // SAFETY: `at` stays within the 4,096 bytes that `sigcontext` holds for records, and records are 16-byte aligned.
        let (magic, bytes) = unsafe {
            let record = machine.add(RECORDS + at).cast::<u32>();
            (record.read(), record.add(1).read())
        };
        match (magic, bytes) {
            (0, _) | (_, 0) => return None,
            // SAFETY: the value follows the 8 bytes of the header, within the 16 bytes checked above.
            (ESR_MAGIC, _) => {
                return Some(unsafe { machine.add(RECORDS + at + 8).cast::<u64>().read() });
            }
            (_, bytes) => at += bytes as usize,
        }
    }
    None
}
