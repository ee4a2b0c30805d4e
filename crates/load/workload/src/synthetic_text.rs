//! Synthetic text: random words, and blocks of words that all prompts share.
//!
//! A long prompt consists mostly of shared blocks, so that no request copies tens of kilobytes. It
//! begins with fresh words, so that two prompts differ from the start.

use std::sync::Arc;

use plimsoll_measure::{Rng, Seed};
use plimsoll_protocol::Text;

/// Bytes of the words that are chosen by one random number of 64 bits.
const GROUP: usize = 4 * WORD_BYTES;
/// Bytes of the words that are chosen before they join a text.
const CHUNK: usize = 64 * WORD_BYTES;
/// The most words of a list.
const MOST_WORDS: usize = 256;
/// The end of the marker of a prompt, which separates it from the text.
pub(crate) const MARKER_END: &str = "--- ";
/// Words of one cached block of a Mooncake trace.
pub(crate) const CACHE_BLOCK: usize = 512;
/// Fresh words at the beginning of a cached block: far more combinations than there are blocks.
const CACHE_HEAD: usize = 16;
/// Words of a shared block.
const BLOCK: usize = CACHE_BLOCK - CACHE_HEAD;
/// Number of shared blocks: half a megabyte of text.
const BLOCKS: u64 = 256;

/// Generates synthetic text from a list of words.
#[derive(Debug)]
pub(crate) struct TextGenerator {
    /// As many as an index of 8 bits can name, so that finding one needs no check.
    words: Box<[[u8; WORD_BYTES]; MOST_WORDS]>,
    /// Words of the list.
    count: u64,
    blocks: Vec<Arc<str>>,
}

impl TextGenerator {
    /// A generator for a list of at most [`MOST_WORDS`] words, each of [`WORD_BYTES`] bytes and
    /// without a character that needs an escape in JSON.
    pub(crate) fn new(words: &[&'static str], seed: Seed) -> Self {
        let mut list = Box::new([[b' '; WORD_BYTES]; MOST_WORDS]);
        let words = words.iter().filter_map(|word| word.as_bytes().try_into().ok());
        let count = list.iter_mut().zip(words).map(|(place, word)| *place = word).count() as u64;
        let mut generator = Self { words: list, count, blocks: Vec::new() };
        generator.blocks = (0..BLOCKS)
            .map(|index| {
                let mut text = String::new();
                generator.write(&mut seed.rng("block", index), BLOCK, &mut text);
                text.into()
            })
            .collect();
        generator
    }

    /// Appends `count` words: fresh ones (between 1 and a block of them), then shared blocks.
    pub(crate) fn push(&self, mut rng: Rng, count: usize, text: &mut Text) {
        let blocks = Self::blocks_of(count);
        self.write(&mut rng, count - blocks * BLOCK, text.plain_end());
        for _ in 0..blocks {
            text.share_plain(Arc::clone(self.block(&mut rng)));
        }
    }

    /// Appends the word that `rng` determines, without a space: the end of a text.
    pub(crate) fn push_last(&self, mut rng: Rng, text: &mut Text) {
        let end = text.plain_end();
        self.write(&mut rng, 1, end);
        end.pop();
    }

    /// Appends a word for each of these numbers.
    pub(crate) fn push_chosen(&self, numbers: impl Iterator<Item = u8>, end: &mut String) {
        let count = usize::try_from(self.count).unwrap_or_default();
        for number in numbers {
            let word = &self.words[(usize::from(number) * count) >> 8];
            end.push_str(str::from_utf8(word).unwrap_or_default());
        }
    }

    /// Bytes of the fresh words at the beginning of a text of `count` words.
    pub(crate) const fn fresh_bytes(count: usize) -> usize {
        WORD_BYTES * (count - Self::blocks_of(count) * BLOCK)
    }

    /// Appends the first `count` words, at most [`CACHE_BLOCK`], of the block that `rng`
    /// determines, without the last space if it is the end of the text.
    pub(crate) fn push_cache_block(
        &self,
        mut rng: Rng,
        count: usize,
        is_end: bool,
        text: &mut Text,
    ) {
        // The whole head is drawn even if only a part is needed, so the numbers after it stay the
        // same.
        let end = text.plain_end();
        let start = end.len();
        self.write(&mut rng, CACHE_HEAD, end);
        if count <= CACHE_HEAD {
            end.truncate(start + (count * WORD_BYTES).saturating_sub(usize::from(is_end)));
            return;
        }
        let block = self.block(&mut rng);
        match count - CACHE_HEAD {
            BLOCK if !is_end => text.share_plain(Arc::clone(block)),
            part => {
                text.plain_end().push_str(&block[..part * WORD_BYTES - usize::from(is_end)]);
            }
        }
    }

    /// Shared blocks in a text of `count` words.
    const fn blocks_of(count: usize) -> usize {
        count.saturating_sub(1) / BLOCK
    }

    fn block(&self, rng: &mut Rng) -> &Arc<str> {
        let index = rng.below(self.blocks.len() as u64);
        &self.blocks[usize::try_from(index).unwrap_or_default()]
    }

    /// Writes `count` fresh words.
    fn write(&self, rng: &mut Rng, count: usize, text: &mut String) {
        let mut chunk = [b' '; CHUNK];
        let mut left = count * WORD_BYTES;
        while left > 0 {
            let bytes = left.min(CHUNK);
            let (groups, _) = chunk.as_chunks_mut();
            for group in &mut groups[..bytes.div_ceil(GROUP)] {
                self.choose(rng.next_u64(), group);
            }
            text.push_str(simdutf8::basic::from_utf8(&chunk[..bytes]).unwrap_or_default());
            left -= bytes;
        }
    }

    /// The words that a random number chooses: 16 bits are enough for one of a few hundred.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "an index below the number of words")]
    fn choose(&self, mut bits: u64, group: &mut [u8; GROUP]) {
        for word in group.as_chunks_mut().0 {
            let index = ((bits & 0xFFFF) * self.count) >> 16;
            *word = self.words[usize::from(index as u8)];
            bits >>= 16;
        }
    }
}

/// 256 English words of three letters, each followed by a space. Every word is four bytes and,
/// behind a space, one token in cl100k, o200k, and the tokenizers of Anthropic (the published one),
/// `DeepSeek` and Mistral (v1 and Tekken).
const WORDS: &str = "\
    the and for are but not you all any can had her was one our out day get has him his how man \
    new now old see two way who boy did its let put say she too use act add age ago aid aim air \
    art ask bad bag bar bed big bit box bus buy car cat cup cut dog dry due ear eat egg end eye \
    far few fit fix fly fun gas got guy hat hit hot ice ill job key kid law lay led leg lie lip \
    lot low map may men met mix net nor odd off oil own pay per pop raw red rid row run sad sat \
    sea set sir sit six sky son sun tax tea ten tie tip top toy try van via war wet why win yes \
    yet arm bid cow cry dad dot era fan fee gap hey ink jet joy lab lap log mad mom mud nod oak \
    pan pen pet pie pin pit pot ran rat rib rip rod rub rug sum tap tin ton tub wax web wed arc \
    zip ace ash bat bay bud beg bet bow bug cab cap cop cub dam den dig dip ego elf gut fig fin \
    fog jug fur gem kit gym ham hay hen hip hop hug max inn min jam jar jaw jog lid mat mob non \
    nap nut pal pad pun pup peg pig pod pub ram ray rag ski sob rim spy tag tan toe tow vet saw \
    sip won tug ";

/// Bytes of a word with its space.
pub(crate) const WORD_BYTES: usize = 4;

/// The words, each with its space.
pub(crate) fn all_words() -> impl Iterator<Item = &'static str> {
    WORDS.split_inclusive(' ')
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeSet, HashSet};

    use super::*;

    fn generator() -> TextGenerator {
        TextGenerator::new(&all_words().collect::<Vec<_>>(), Seed(1))
    }

    #[test]
    fn texts_have_the_requested_number_of_words() {
        let generator = generator();
        for count in [0, 1, 3, 4, 5, 495, 496, 497, 992, 993, 12_500] {
            let mut text = Text::new();
            generator.push(Seed(2).rng("text", 0), count, &mut text);
            assert_eq!(text.to_string().split_whitespace().count(), count);
            assert_eq!(text.len(), count * WORD_BYTES);
        }
    }

    #[test]
    fn each_word_is_chosen_by_16_bits_of_a_random_number() {
        let all: Vec<_> = all_words().collect();
        for (words, count) in [(256, 1), (256, 6), (256, 63), (256, 65), (256, 496), (33, 130)] {
            let list = &all[..words];
            let mut text = Text::new();
            TextGenerator::new(list, Seed(1)).push(Seed(2).rng("text", 0), count, &mut text);
            let mut rng = Seed(2).rng("text", 0);
            let numbers = std::iter::repeat_with(|| rng.next_u64());
            let sixteen_bits =
                numbers.flat_map(|bits| [0, 16, 32, 48].map(|by| bits >> by & 0xFFFF));
            let index = |bits| usize::try_from(bits).unwrap() * words / 0x1_0000;
            let chosen = sixteen_bits.map(|bits| list[index(bits)]);
            assert_eq!(text.to_string(), chosen.take(count).collect::<String>(), "{words} {count}");
        }
    }

    #[test]
    fn long_texts_share_their_blocks_and_differ_from_the_first_words() {
        let generator = generator();
        let texts: Vec<Text> = (0..1_000)
            .map(|index| {
                let mut text = Text::new();
                generator.push(Seed(2).rng("text", index), 1_488, &mut text);
                text
            })
            .collect();
        let starts: HashSet<_> =
            texts.iter().map(|text| text.to_string()[..32].to_owned()).collect();
        assert_eq!(starts.len(), texts.len());
        let pieces: HashSet<_> =
            texts.iter().flat_map(Text::pieces).map(|piece| piece.as_ptr().addr()).collect();
        assert!(pieces.len() <= 1_000 + 256, "one fresh piece each, and the shared ones");
    }

    #[test]
    fn a_part_of_a_cached_block_is_the_beginning_of_the_whole() {
        let generator = generator();
        let block = |count| {
            let mut text = Text::new();
            generator.push_cache_block(Seed(2).rng("hash", 7), count, false, &mut text);
            text.to_string()
        };
        let whole = block(CACHE_BLOCK);
        assert_eq!(whole.len(), 2_048);
        for count in [1, 15, 16, 17, 300, 511] {
            assert_eq!(block(count), whole[..count * WORD_BYTES], "{count}");
        }
    }

    /// As counted with the tokenizers themselves.
    #[test]
    fn no_word_is_two_tokens_in_a_common_tokenizer() {
        let two = "bee elm fox gum hut ivy mop mug owl paw pea sew spa vow wig wit zoo \
                   aka ana btw cpr ebb dye ewe fez gnu hew";
        let found = all_words().find(|word| two.split(' ').any(|other| other == word.trim_end()));
        assert_eq!(found, None);
    }

    #[test]
    fn every_word_is_unique_and_is_three_letters_and_a_space() {
        let unique: BTreeSet<_> = all_words().collect();
        assert_eq!((unique.len(), all_words().count()), (256, 256));
        for word in unique {
            let letters = word.strip_suffix(' ').unwrap();
            assert!(
                letters.len() == 3 && letters.bytes().all(|b| b.is_ascii_lowercase()),
                "{word}"
            );
        }
    }
}
