//! Cases to come.

use crate::case::cases;

cases![];
