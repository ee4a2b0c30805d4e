//! The live view of a run: what a terminal shows while the load goes on.
//!
//! - [`RunFacts`], [`Update`], [`SoFar`] and [`Difference`]: what the view is told
//! - [`Model`]: what it knows, with the last two minutes of every scenario and target
//! - [`draw`]: the model as characters and colours, at any size
//! - [`View`]: a thread that draws four times a second and reads keys, and the terminal's state
//!
//! ```text
//! Update, once a second --> Model --draw--> Buffer --differences--> terminal
//! ```
//!
//! The view never holds up the load: it is fed from counts that the run makes anyway, it has a
//! thread of its own, and a terminal that takes no characters, or is gone, only costs frames.

mod ansi;
mod display;
mod facts;
mod history;
mod keys;
mod model;
mod screen;
mod view;

pub use display::View;
pub use facts::{Difference, ProcessNow, RunFacts, SoFar, StageFacts, Update};
pub use model::{Look, Model};
pub use screen::{is_foreground, restore};
pub use view::draw;
