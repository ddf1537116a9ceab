//! The offline model at its seam: requests in, replies out, tools played by the test. How well it
//! answers with real tools on real files is measured by the question set of the command line.

mod conversations;
mod delegation;
mod limits;
mod properties;
mod replies;
mod safety;
mod world;
