//! Ctrl-C and SIGTERM: a flag that every wait looks at, so that a run ends in order and keeps what it found.

use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// The flag of the process, once one is installed.
static INSTALLED: OnceLock<Interrupt> = OnceLock::new();

/// The signal that asked this process to end, if any.
pub fn received() -> Option<i32> {
    INSTALLED.get().and_then(Interrupt::signal)
}

/// Makes a write beyond the limit on the size of files an error instead of the end of this process.
///
/// # Errors
/// Where the handler cannot be installed.
pub fn survive_file_size_limit() -> std::io::Result<()> {
    signal_hook::flag::register(libc::SIGXFSZ, Arc::default()).map(drop)
}

/// Which signal asked the run to end, if any. Clones share the flag.
#[derive(Debug, Clone, Default)]
pub struct Interrupt {
    signal: Arc<AtomicUsize>,
    /// Set by the program itself, for instance when a closed pipe ends the output.
    own: Arc<AtomicI32>,
}

impl Interrupt {
    /// The flag that SIGINT, SIGTERM and SIGHUP set; a second signal ends the program at once.
    ///
    /// # Errors
    /// Where a handler cannot be installed.
    pub fn install() -> std::io::Result<Interrupt> {
        if let Some(interrupt) = INSTALLED.get() {
            return Ok(interrupt.clone());
        }
        let interrupt = Interrupt::default();
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            // The conditional default runs first: it acts once the flag is set.
            let armed = Arc::new(std::sync::atomic::AtomicBool::new(false));
            signal_hook::flag::register_conditional_default(signal, Arc::clone(&armed))?;
            signal_hook::flag::register(signal, armed)?;
            signal_hook::flag::register_usize(signal, Arc::clone(&interrupt.signal), signal as usize)?;
        }
        Ok(INSTALLED.get_or_init(|| interrupt).clone())
    }

    pub fn is_set(&self) -> bool {
        self.signal.load(Ordering::Relaxed) != 0 || self.own.load(Ordering::Relaxed) != 0
    }

    /// The signal that set it.
    pub fn signal(&self) -> Option<i32> {
        match self.signal.load(Ordering::Relaxed) {
            0 => None,
            s => Some(s as i32),
        }
    }

    /// Ends the run from inside.
    pub fn set(&self) {
        self.own.store(1, Ordering::Relaxed);
    }
}
