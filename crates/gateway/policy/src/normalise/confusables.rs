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
        // Letters in filled circles and squares, and those that flags are made of.
        code @ (0x1f150..=0x1f169 | 0x1f170..=0x1f189 | 0x1f1e6..=0x1f1ff) => {
            let first = [0x1f1e6, 0x1f170, 0x1f150].into_iter().find(|first| code >= *first)?;
            char::from_u32(code - first + u32::from('A'))
        }
        0xa0..=0x36f | 0x530..=0x58f | 0x13a0..=0x1dff | 0xa4d0..=0xab6f => {
            look_up(character, SHAPES)
        }
        _ => None,
    }
}

/// Letters, and below each the Latin one that it looks like.
const GREEK: [&str; 2] = ["ΑΒΕΖΗΙΚΜΝΟΡΤΥΧαεικνορτυχ", "ABEZHIKMNOPTYXaeikvoptux"];
const CYRILLIC: [&str; 2] =
    ["АВЕКМНОРСТУҮХІЈЅавекмопрстухіјѕһԁԛԝг", "ABEKMHOPCTYYXIJSabekmonpctyxijshdqwr"];

/// Small capitals; Latin letters with a stroke or of another alphabet; Armenian, Cherokee, Lisu.
const SHAPES: [&str; 2] = [
    "ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢıɑɡøđłħŧɨɩսոօցհᎪᏴᏟᎠᎬᏀᎻᎢᎫᏦᏞᎷᏢᎡᏚᏙᏔꓮꓐꓚꓓꓰꓝꓖꓧꓲꓙꓗꓡꓟꓠꓳꓑꓣꓢꓔꓴꓦꓪꓫꓬꓜ",
    "abcdefghijklmnoprstuvwyziagodlhtiiunoghABCDEGHTJKLMPRSVWABCDEFGHIJKLMNOPRSTUVWXYZ",
];

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
            ('\u{1f158}', 'I'),
            ('\u{1f170}', 'A'),
            ('\u{1f1ff}', 'Z'),
            ('\u{1d00}', 'a'),
            ('\u{26a}', 'i'),
            ('\u{f8}', 'o'),
            ('\u{570}', 'h'),
            ('\u{13aa}', 'A'),
            ('\u{a4ee}', 'A'),
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
