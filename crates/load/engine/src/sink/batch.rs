//! Samples on their way to the writer.

use plimsoll_measure::{Moment, Sample, TaskSample};

use super::sampling::SamplingRate;
use crate::response_headers::RecordedHeader;

/// What a row has besides its sample.
#[derive(Debug, Default)]
pub(crate) struct RowExtras {
    /// Arrival times of the content events, where the row shall have them.
    pub(crate) events: Option<Vec<Moment>>,
    /// Response headers that the profile records.
    pub(crate) headers: Vec<RecordedHeader>,
}

/// Samples of a stretch of the run.
#[derive(Debug, Default)]
pub struct SampleBatch {
    /// The samples, in the order in which their turns ended.
    pub samples: Vec<Sample>,
    /// Arrival times of the content events of some of them, by index in `samples`, ascending.
    pub events: Vec<(usize, Vec<Moment>)>,
    /// Recorded response headers of some of them, likewise.
    pub headers: Vec<(usize, Vec<RecordedHeader>)>,
    /// Tasks of agents, in the order in which they ended.
    pub tasks: Vec<TaskSample>,
    /// The sampling rate that applied while the samples were collected.
    pub sampling_rate: SamplingRate,
}

impl SampleBatch {
    /// Every sample, with the arrival times of its content events and the response headers that
    /// its row shall have.
    pub fn rows(&self) -> impl Iterator<Item = (&Sample, Option<&[Moment]>, &[RecordedHeader])> {
        let mut events = self.events.iter().peekable();
        let mut headers = self.headers.iter().peekable();
        self.samples.iter().enumerate().map(move |(index, sample)| {
            let times = events.next_if(|(of, _)| *of == index);
            let headers = headers.next_if(|(of, _)| *of == index);
            let headers = headers.map_or(&[][..], |(_, headers)| headers);
            (sample, times.map(|(_, times)| times.as_slice()), headers)
        })
    }
}
