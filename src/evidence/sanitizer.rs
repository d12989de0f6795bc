//! What NVIDIA's compute-sanitizer says of a bad access: the exact address, the instruction and the thread.

use crate::device::Access;

/// The first bad access of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    pub address: u64,
    pub access: Access,
    /// `gemm+0x7f0 in planted.cu:45, thread (0,0,0) of block (0,1,0)`.
    pub code: String,
}

/// Reads the log of the tool `memcheck`.
pub fn parse(log: &str) -> Option<Said> {
    let lines: Vec<&str> = log.lines().map(|l| l.trim_start_matches('=').trim()).collect();
    let start = lines.iter().position(|l| l.starts_with("Invalid __"))?;
    let access = match lines[start] {
        l if l.contains(" read of size") => Access::Read,
        l if l.contains(" write of size") || l.contains(" atomic of size") => Access::Write,
        _ => return None,
    };
    let rest = &lines[start + 1..];
    let ends = rest.iter().position(|l| l.is_empty() || l.starts_with("Saved host")).unwrap_or(rest.len());
    let after = |word: &str| rest[..ends].iter().find_map(|l| l.split_once(word)).map(|(_, r)| r.trim().to_owned());
    // "Access to 0x90043fffffc is out of bounds", in older versions "Address 0x90043fffffc is out of bounds".
    let digits = rest[..ends]
        .iter()
        .filter(|l| l.starts_with("Access to") || l.starts_with("Address"))
        .find_map(|l| l.split_once("0x"))
        .map(|(_, r)| r.chars().take_while(char::is_ascii_hexdigit).collect::<String>())?;
    let thread = after("by thread ").map(|t| t.replace(" in block ", " of block "));
    let code = [after("at "), thread.map(|t| format!("thread {t}"))].into_iter().flatten().collect::<Vec<_>>();
    Some(Said { address: u64::from_str_radix(&digits, 16).ok()?, access, code: code.join(", ") })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Recorded with compute-sanitizer 2025.3 on a kernel of scripts/targets/cuda/planted.cu.
    const LOG: &str = "========= COMPUTE-SANITIZER\n\
        ========= Invalid __global__ read of size 4 bytes\n\
        =========     at gemm+0x7f0 in planted.cu:45\n\
        =========     by thread (0,0,0) in block (0,1,0)\n\
        =========     Access to 0x90043fffffc is out of bounds\n\
        =========     and is 8,587,837,444 bytes before the nearest allocation at 0x90243e00000 of size 2,097,152 bytes\n\
        =========     Saved host backtrace up to driver entry point at kernel launch time\n\
        =========         Host Frame: cuLaunchKernel [0x39fb94] in libcuda.so.1\n\
        ========= \n\
        ========= Program hit CUDA_ERROR_LAUNCH_FAILED (error 719) due to \"unspecified launch failure\" on CUDA API call to cuCtxSynchronize.\n\
        ========= ERROR SUMMARY: 2 errors\n";

    #[test]
    fn the_first_access_of_a_log_is_read_with_its_instruction_and_thread() {
        let said = parse(LOG).unwrap();
        assert_eq!((said.address, said.access), (0x900_43ff_fffc, Access::Read));
        assert_eq!(said.code, "gemm+0x7f0 in planted.cu:45, thread (0,0,0) of block (0,1,0)");
        assert_eq!(parse(&LOG.replace(" read of", " write of")).unwrap().access, Access::Write);
        assert_eq!(parse("========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n"), None);
    }
}
