//! Samples on their way to the writer.

use plimsoll_measure::{Moment, Sample, TaskSample};

use super::sampling::SamplingRate;
use crate::response_headers::{NamedPart, RecordedHeader};

/// What a row has besides its sample.
#[derive(Debug, Default)]
pub(crate) struct RowExtras {
    /// Arrival times of the content events, where the row shall have them.
    pub(crate) events: Option<Vec<Moment>>,
    /// Response headers that the profile records.
    pub(crate) headers: Vec<RecordedHeader>,
    /// Parts of the target's time, where the response names any.
    pub(crate) parts: Vec<NamedPart>,
    /// What the target says of its error, or what was wrong.
    pub(crate) error_detail: Option<String>,
    /// Size of a body that came compressed, once decoded.
    pub(crate) decoded_bytes: Option<u64>,
}

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

/// What a row has besides its sample, as the writer sees it.
#[derive(Clone, Copy, Debug)]
pub struct WrittenExtras<'b> {
    /// Arrival times of its content events.
    pub events: Option<&'b [Moment]>,
    /// Response headers that the profile records.
    pub headers: &'b [RecordedHeader],
    /// Parts of the target's time.
    pub parts: &'b [NamedPart],
    /// What the target says of its error, or what was wrong; credentials may be in it.
    pub error_detail: Option<&'b str>,
    /// Size of a body that came compressed, once decoded.
    pub decoded_bytes: Option<u64>,
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
    /// Parts of the target's time of some of them, likewise.
    pub parts: Vec<(usize, Vec<NamedPart>)>,
    /// Messages of failures, likewise.
    pub error_details: Vec<(usize, String)>,
    /// Sizes of decoded bodies, likewise.
    pub decoded_bytes: Vec<(usize, u64)>,
    /// Tasks of agents, in the order in which they ended.
    pub tasks: Vec<TaskSample>,
    /// The sampling rate that applied while the samples were collected.
    pub sampling_rate: SamplingRate,
}

impl SampleBatch {
    /// Every sample, with what its row shall have besides.
    pub fn rows(&self) -> impl Iterator<Item = (&Sample, WrittenExtras<'_>)> {
        let mut events = self.events.iter().peekable();
        let mut headers = self.headers.iter().peekable();
        let mut parts = self.parts.iter().peekable();
        let mut errors = self.error_details.iter().peekable();
        let mut decoded = self.decoded_bytes.iter().peekable();
        self.samples.iter().enumerate().map(move |(index, sample)| {
            let headers = headers.next_if(|(of, _)| *of == index);
            let parts = parts.next_if(|(of, _)| *of == index);
            let extras = WrittenExtras {
                events: events.next_if(|(of, _)| *of == index).map(|(_, times)| times.as_slice()),
                headers: headers.map_or(&[][..], |(_, headers)| headers),
                parts: parts.map_or(&[][..], |(_, parts)| parts),
                error_detail: errors
                    .next_if(|(of, _)| *of == index)
                    .map(|(_, detail)| detail.as_str()),
                decoded_bytes: decoded.next_if(|(of, _)| *of == index).map(|(_, bytes)| *bytes),
            };
            (sample, extras)
        })
    }
}
