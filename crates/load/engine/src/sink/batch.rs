//! Samples on their way to the writer.

use plimsoll_measure::{Moment, Sample, TaskSample};

use super::sampling::SamplingRate;
use crate::response_headers::{NamedPart, RecordedHeader};

/// Additional data of a row besides its sample.
#[derive(Debug, Default)]
pub struct RowExtras {
    /// Arrival times of the content events, where the row shall have them.
    pub events: Option<Vec<Moment>>,
    /// Response headers that the profile records.
    pub headers: Vec<RecordedHeader>,
    /// Parts of the target's time, where the response names any.
    pub parts: Vec<NamedPart>,
    /// Error text of the target, or a description of the problem; it may contain credentials.
    pub error_detail: Option<String>,
    /// Size of a body that came compressed, once decoded.
    pub decoded_bytes: Option<u64>,
}

/// Those of most rows.
static NONE: RowExtras = RowExtras {
    events: None,
    headers: Vec::new(),
    parts: Vec::new(),
    error_detail: None,
    decoded_bytes: None,
};

impl RowExtras {
    /// Whether there is nothing.
    pub(crate) const fn is_empty(&self) -> bool {
        self.events.is_none()
            && self.headers.is_empty()
            && self.parts.is_empty()
            && self.error_detail.is_none()
            && self.decoded_bytes.is_none()
    }
}

/// Samples of a stretch of the run.
#[derive(Debug, Default)]
pub struct SampleBatch {
    /// The samples, in the order in which their turns ended.
    pub samples: Vec<Sample>,
    /// Additional data for some of the rows, by index in `samples`, ascending.
    pub extras: Vec<(usize, RowExtras)>,
    /// Tasks of agents, in the order in which they ended.
    pub tasks: Vec<TaskSample>,
    /// The sampling rate that applied while the samples were collected.
    pub sampling_rate: SamplingRate,
}

impl SampleBatch {
    /// Every sample, with the additional data of its row.
    pub fn rows(&self) -> impl Iterator<Item = (&Sample, &RowExtras)> {
        let mut extras = self.extras.iter().peekable();
        self.samples.iter().enumerate().map(move |(index, sample)| {
            let own = extras.next_if(|(of, _)| *of == index);
            (sample, own.map_or(&NONE, |(_, extras)| extras))
        })
    }
}
