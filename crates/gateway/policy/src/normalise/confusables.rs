//! Confusables: characters that look like ASCII characters.

/// The ASCII character that `character` looks like.
pub(super) fn latin(character: char) -> Option<char> {
    match character as u32 {
        0x2010..=0x2015 | 0x2212 => Some('-'),
        0x2018..=0x201b | 0x2032 | 0x2b9 | 0x2bc => Some('\''),
        0x201c..=0x201f | 0x2033 => Some('"'),
        0x2044 | 0x2215 => Some('/'),
        // Tag characters, which are invisible, spell ASCII.
        0xe0020..=0xe007e => char::from_u32(character as u32 - 0xe_0000),
        0x370..=0x3ff => look_up(character, GREEK),
        0x400..=0x52f => look_up(character, CYRILLIC),
        0x131 => Some('i'),
        0x251 => Some('a'),
        0x261 => Some('g'),
        _ => None,
    }
}

/// Letters, and below each the Latin one that it looks like.
const GREEK: [&str; 2] = ["ΑΒΕΖΗΙΚΜΝΟΡΤΥΧαεικνορτυχ", "ABEZHIKMNOPTYXaeikvoptux"];
const CYRILLIC: [&str; 2] =
    ["АВЕКМНОРСТУҮХІЈЅавекмопрстухіјѕһԁԛԝг", "ABEKMHOPCTYYXIJSabekmonpctyxijshdqwr"];

fn look_up(character: char, [letters, latin]: [&str; 2]) -> Option<char> {
    latin.chars().nth(letters.chars().position(|letter| letter == character)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn confusables_become_the_ascii_character_that_they_look_like() {
        let rows = [
            ('\u{2212}', '-'),
            ('\u{2019}', '\''),
            ('\u{201d}', '"'),
            ('\u{2044}', '/'),
            ('\u{420}', 'P'),
            ('\u{455}', 's'),
            ('\u{3a1}', 'P'),
            ('\u{131}', 'i'),
            ('\u{e0041}', 'A'),
        ];
        for (character, expected) in rows {
            assert_eq!(latin(character), Some(expected), "{character:?}");
        }
    }

    #[test]
    fn ascii_and_letters_of_other_shapes_stay() {
        for character in ['a', ' ', '\u{e9}', '\u{416}', '\u{3a9}', '\u{65e5}', '\u{e0001}'] {
            assert_eq!(latin(character), None, "{character:?}");
        }
    }
}
