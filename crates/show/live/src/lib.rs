//! The live view of a run: the display on a terminal during the load.
//!
//! - [`RunFacts`], [`SoFar`] and [`Difference`]: input of the view
//! - [`Model`]: its state, with the last two minutes of every scenario and target
//! - [`draw`]: renders the model as characters and colours, at any size
//! - [`View`]: a thread that draws four times a second and reads keys, and the terminal's state
//!
//! ```text
//! Update, once a second --> Model --draw--> Buffer --differences--> terminal
//! ```
//!
//! The view never delays the load: its input are counts that the run makes anyway, it has its own
//! thread, and a terminal that is blocked or closed only costs frames.

mod display;
mod model;
mod screen;
mod view;

pub use display::View;
pub use model::{Difference, Look, Model, RunFacts, SoFar, StageFacts};
pub use screen::{is_foreground, restore};
pub use view::draw;
