//! Children that die, for the tests of this module.

use std::hint::black_box;
use std::process::Command;
use std::{env, fs, mem, ptr};

use super::{Fault, FaultRecord, install};

/// Runs code that dies in forked children, which report through shared memory.
pub(super) struct Child {
    record: *mut FaultRecord,
}

impl Child {
    pub(super) fn new() -> Child {
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: without MAP_FIXED the kernel picks addresses that nothing uses.
        let record = unsafe { libc::mmap(ptr::null_mut(), mem::size_of::<FaultRecord>(), access, flags, -1, 0) };
        assert_ne!(record, libc::MAP_FAILED);
        Child { record: record.cast() }
    }

    /// What the handler records of `body`, which has to die of the signal that it records.
    pub(super) fn fault<T>(&self, body: impl FnOnce() -> T) -> Fault {
        let process = self.fork(body);
        self.wait(process)
    }

    /// What the handler records of a signal that another process sends.
    pub(super) fn killed_by(&self, signal: i32) -> Fault {
        let mut pipe = [0; 2];
        // SAFETY: room for the two descriptors.
        assert_eq!(unsafe { libc::pipe(pipe.as_mut_ptr()) }, 0);
        let process = self.fork(|| {
            // SAFETY: one byte is there to be written.
            unsafe { libc::write(pipe[1], [0_u8].as_ptr().cast(), 1) };
            loop {
                // SAFETY: takes no pointers.
                unsafe { libc::pause() };
            }
        });
        let mut byte = [0_u8];
        // SAFETY: there is room for one byte, and the descriptors and the child are this function's own.
        unsafe {
            assert_eq!(libc::read(pipe[0], byte.as_mut_ptr().cast(), 1), 1);
            libc::kill(process, signal);
            libc::close(pipe[0]);
            libc::close(pipe[1]);
        }
        self.wait(process)
    }

    fn fork<T>(&self, body: impl FnOnce() -> T) -> libc::pid_t {
        // SAFETY: the child runs only `body`, which takes no lock that another thread of the test may hold (glibc makes
        // its heap usable after a fork), and never returns from here.
        match unsafe { libc::fork() } {
            -1 => panic!("failed to fork"),
            0 => {
                set_limit(libc::RLIMIT_CORE, 0);
                // SAFETY: the record stays mapped until the child ends. `alarm` ends a child that hangs; `_exit` skips
                // whatever the parent registered for its own end.
                unsafe {
                    libc::alarm(20);
                    let installed = install(self.record);
                    if installed.is_ok() {
                        black_box(body());
                    }
                    libc::_exit(if installed.is_ok() { 98 } else { 99 })
                }
            }
            process => process,
        }
    }

    fn wait(&self, process: libc::pid_t) -> Fault {
        let mut status = 0;
        // SAFETY: the child is this value's own, and `status` is valid.
        assert_eq!(unsafe { libc::waitpid(process, &mut status, 0) }, process);
        // SAFETY: mapped in `new` and never unmapped before `drop`.
        let fault = unsafe { &*self.record }.read();
        let fault = fault.unwrap_or_else(|| panic!("nothing was recorded, wait status {status:#x}"));
        assert!(libc::WIFSIGNALED(status), "wait status {status:#x}, {fault:?}");
        assert_eq!(libc::WTERMSIG(status), fault.signal);
        fault
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own.
        unsafe { libc::munmap(self.record.cast(), mem::size_of::<FaultRecord>()) };
    }
}

/// Runs `body` in a process of its own: this test binary again, with only the test `name`.
pub(super) fn in_fresh_process(name: &str, body: impl FnOnce()) {
    const INSIDE: &str = "SHRINKFAULT_TEST_INSIDE";
    if env::var_os(INSIDE).is_some() {
        // SAFETY: takes no pointers. A test that hangs ends here.
        unsafe { libc::alarm(60) };
        return body();
    }
    let output = Command::new(env::current_exe().unwrap())
        .args([name, "--exact", "--nocapture", "--test-threads=1"])
        .env(INSIDE, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("1 passed"), "no test is called {name}");
}

/// Lowers a limit of this process.
pub(super) fn set_limit(resource: libc::__rlimit_resource_t, value: u64) {
    let limit = libc::rlimit { rlim_cur: value, rlim_max: value };
    // SAFETY: the pointer is valid.
    assert_eq!(unsafe { libc::setrlimit(resource, &limit) }, 0);
}

/// Memory that this process occupies.
pub(super) fn resident_bytes() -> u64 {
    let statm = fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * super::system::page_bytes()
}

/// Loads one byte, wherever it is.
#[inline(never)]
pub(super) fn read_byte(address: u64) -> u8 {
    // SAFETY: either the page is mapped by the test, or the child that calls this dies of it, as it should.
    unsafe { ptr::with_exposed_provenance::<u8>(address as usize).read_volatile() }
}

/// Stores one byte, wherever that is.
#[inline(never)]
pub(super) fn write_byte(address: u64, value: u8) {
    // SAFETY: either the page is mapped by the test, or the child that calls this dies of it, as it should.
    unsafe { ptr::with_exposed_provenance_mut::<u8>(address as usize).write_volatile(value) }
}
