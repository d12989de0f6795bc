//! A launch that a GPU ended, as the worker that lost it tells the supervisor.

use crate::device::Access;
use serde::{Deserialize, Serialize};

/// What is known of a failed launch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuFault {
    /// The runtime's status: `cuCtxSynchronize failed: CUDA_ERROR_ILLEGAL_ADDRESS (700), ...`.
    pub status: String,
    /// The status says that an access was bad; others are crashes.
    pub is_memory: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<u64>,
    /// The address is only known to lie in this many bytes from it on; 1 is exact.
    pub grain: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<Access>,
    /// Who said so.
    pub channel: String,
}
