//! The offline model on repositories it has never seen: what share of its answers cites a right
//! place.

use crate::world::World;
use posse_testkit::{Reply, Script};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

mod c_library;
mod go_service;
mod notes_only;
mod python_package;
mod rust_workspace;
mod this_repository;
mod two_authors;
mod web_app;
