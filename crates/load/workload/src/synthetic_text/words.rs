//! The vocabulary of synthetic text.

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
    use super::*;
    use std::collections::BTreeSet;

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
