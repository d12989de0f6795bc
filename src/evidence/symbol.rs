//! From an instruction address to module, offset and symbol.
use serde::{Deserialize, Serialize};
/// stub
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Module {
    pub path: String,
}
