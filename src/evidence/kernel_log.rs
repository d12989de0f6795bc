//! The kernel's log: where the NVIDIA driver says which page a process touched, if this user may read it.

use super::device_text;
use crate::device::Access;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::time::{Duration, Instant};

const DEVICE: &str = "/dev/kmsg";
/// Bytes in which the driver names the address of a fault.
pub const PAGE_BYTES: u64 = 4096;
/// Longest line that the kernel gives.
const LINE: usize = 8192;
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// The log from some moment on.
#[derive(Debug)]
pub struct KernelLog {
    file: File,
}

/// A line about a fault of one process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageFault {
    /// Start of the page.
    pub page: u64,
    pub access: Option<Access>,
}

impl KernelLog {
    /// Opens the log at its end.
    ///
    /// # Errors
    /// One sentence, where this user may not read it.
    pub fn open() -> Result<KernelLog, String> {
        let opened = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(DEVICE);
        let mut file = opened.map_err(|e| format!("{DEVICE} cannot be read ({e})"))?;
        file.seek(SeekFrom::End(0)).map_err(|e| format!("{DEVICE} cannot be read ({e})"))?;
        Ok(KernelLog { file })
    }

    /// The first line since the log was opened that names a fault of this process, waiting so long for it at most.
    pub fn page_fault(&mut self, pid: u32, patience: Duration) -> Option<PageFault> {
        let give_up = Instant::now() + patience;
        let mut line = [0; LINE];
        loop {
            match self.file.read(&mut line) {
                Ok(count) if count > 0 => {
                    if let Some(fault) = parse(&String::from_utf8_lossy(&line[..count]), pid) {
                        return Some(fault);
                    }
                }
                // Lines that were overwritten before they were read.
                Err(e) if e.raw_os_error() == Some(libc::EPIPE) => {}
                _ if Instant::now() >= give_up => return None,
                _ => std::thread::sleep(LOOK_EVERY),
            }
        }
    }
}

/// What a line says of a page fault of the process.
fn parse(line: &str, pid: u32) -> Option<PageFault> {
    if !line.contains("NVRM: Xid") || !line.contains(&format!("pid={pid},")) {
        return None;
    }
    let fault = device_text::find(line, &[])?;
    Some(PageFault { page: fault.address?, access: fault.access })
}

#[cfg(test)]
mod tests {
    use super::*;

    const XID: &str = "4,1234,5678,-;NVRM: Xid (PCI:0000:00:06): 31, pid=561, name=probe1, channel 0x0000000a, intr 00000000. \
                       MMU Fault: ENGINE GRAPHICS GPC1 GPCCLIENT_T1_4 faulted @ 0x1ff_12000000. Fault is of type FAULT_PDE \
                       ACCESS_TYPE_VIRT_READ\n";

    #[test]
    fn a_line_of_the_driver_names_page_and_access_of_its_process() {
        let fault = parse(XID, 561).unwrap();
        assert_eq!(fault, PageFault { page: 0x1ff_1200_0000, access: Some(Access::Read) });
        assert_eq!(parse(XID, 56), None);
        assert_eq!(parse(XID, 5610), None);
        assert_eq!(parse(&XID.replace("VIRT_READ", "VIRT_WRITE"), 561).unwrap().access, Some(Access::Write));
        assert_eq!(parse("4,1,1,-;NVRM: Xid (PCI:0000:00:06): 13, pid=561, Graphics Exception", 561), None);
    }
}
