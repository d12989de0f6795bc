//! Texts by which device runtimes say on stderr that a kernel touched memory it does not own.

use crate::device::Access;

/// Parts of lines that mean a device fault. docs/protocol.md lists them with who prints them.
pub const FAULT_TEXTS: [&str; 13] = [
    "Memory access fault by GPU node-",
    "HSA_STATUS_ERROR_MEMORY_APERTURE_VIOLATION",
    "HSA_STATUS_ERROR_MEMORY_FAULT",
    "Memory Fault Error [",
    "hipErrorIllegalAddress",
    "an illegal memory access was encountered",
    "CUDA_ERROR_ILLEGAL_ADDRESS",
    "cudaErrorIllegalAddress",
    "CUDA_ERROR_MISALIGNED_ADDRESS",
    "cudaErrorMisalignedAddress",
    "misaligned address",
    "NVRM: Xid",
    "Xid (PCI",
];

/// Words after which such a line names the address, in hexadecimal with or without `0x` and `_`.
const ADDRESS_AFTER: [&str; 3] = ["on address ", "faulted @ ", "faulting addr: "];

/// A device fault as a runtime told it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceFault {
    /// The line, cut to a readable length.
    pub line: String,
    /// As printed: usually that of a page, not of the access.
    pub address: Option<u64>,
    /// Only the kernel log of NVIDIA says it; the reason in ROCr's line is no reliable witness of reading or writing.
    pub access: Option<Access>,
}

/// The first line that means a device fault, by a known text or one of `own`. A line that breaks before its address is
/// read together with the next one.
pub fn find(text: &str, own: &[String]) -> Option<DeviceFault> {
    let lines: Vec<&str> = text.lines().collect();
    let is_fault = |l: &&str| FAULT_TEXTS.iter().any(|t| l.contains(t)) || own.iter().any(|t| l.contains(t.as_str()));
    let at = lines.iter().position(is_fault)?;
    let both = [lines[at], lines.get(at + 1).copied().unwrap_or_default()];
    let access = [("ACCESS_TYPE_VIRT_READ", Access::Read), ("ACCESS_TYPE_VIRT_WRITE", Access::Write)];
    Some(DeviceFault {
        line: lines[at].trim().chars().take(200).collect(),
        address: both.iter().find_map(|l| address(l)),
        access: both.iter().find_map(|l| access.iter().find(|(word, _)| l.contains(word)).map(|(_, a)| *a)),
    })
}

fn address(line: &str) -> Option<u64> {
    ADDRESS_AFTER.iter().find_map(|word| {
        let rest = &line[line.find(word)? + word.len()..];
        let rest = rest.strip_prefix("0x").unwrap_or(rest);
        let digits: String =
            rest.chars().take_while(|c| c.is_ascii_hexdigit() || *c == '_').filter(|c| *c != '_').collect();
        u64::from_str_radix(&digits, 16).ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_lines_of_both_vendors_give_their_address() {
        let rocr = "noise\nMemory access fault by GPU node-1 (Agent handle: 0x55e0) on address 0x7f6459a00000. Reason: Page not present\n";
        let found = find(rocr, &[]).unwrap();
        assert_eq!((found.address, found.access), (Some(0x7f64_59a0_0000), None));
        let xid = "NVRM: Xid (PCI:0000:00:06): 31, pid=561, MMU Fault: ENGINE GRAPHICS faulted @ 0x1ff_12000000. Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_WRITE";
        let found = find(xid, &[]).unwrap();
        assert_eq!((found.address, found.access), (Some(0x1ff_1200_0000), Some(Access::Write)));
        let broken = "Memory access fault by GPU node-8\non address 0xabc000. Reason: Unknown.";
        assert_eq!(find(broken, &[]).unwrap().address, Some(0xabc000));
        let cuda = "RuntimeError: CUDA error: an illegal memory access was encountered";
        assert_eq!(find(cuda, &[]).unwrap().address, None);
    }

    #[test]
    fn a_text_of_the_manifest_counts_and_other_lines_do_not() {
        assert_eq!(find("warning: all is well\nExit 1", &[]), None);
        assert!(find("TPU says ouch", &["says ouch".to_owned()]).is_some());
    }

    proptest! {
        #[test]
        fn any_text_is_searched(text in "(\\PC|\n){0,200}|(faulted @ |on address )(0x)?[0-9a-f_]{0,40}") {
            let _ = find(&text, &[String::new()]);
        }
    }
}
