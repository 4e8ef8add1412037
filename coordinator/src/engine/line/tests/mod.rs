//! One key's line: sequences of events against what must hold of every one, and examples. And the lines of
//! whole engines, whose threads take turns as shuttle says.

mod examples;
mod interleavings;
mod process;
mod sequences;
mod world;
