//! Confusables: characters that look like ASCII characters.

/// The ASCII character that `character` looks like.
pub(super) const fn latin(character: char) -> Option<char> {
    match character as u32 {
        0x2010..=0x2015 | 0x2212 => Some('-'),
        0x2018..=0x201b | 0x2032 | 0x2b9 | 0x2bc => Some('\''),
        0x201c..=0x201f | 0x2033 => Some('"'),
        0x2044 | 0x2215 => Some('/'),
        // Tag characters, which are invisible, spell ASCII.
        0xe0020..=0xe007e => char::from_u32(character as u32 - 0xe_0000),
        0x370..=0x3ff => greek(character),
        0x400..=0x52f => cyrillic(character),
        0x131 => Some('i'),
        0x251 => Some('a'),
        0x261 => Some('g'),
        _ => None,
    }
}

const fn cyrillic(character: char) -> Option<char> {
    Some(match character {
        'А' => 'A',
        'В' => 'B',
        'Е' => 'E',
        'К' => 'K',
        'М' => 'M',
        'Н' => 'H',
        'О' => 'O',
        'Р' => 'P',
        'С' => 'C',
        'Т' => 'T',
        'У' | 'Ү' => 'Y',
        'Х' => 'X',
        'І' => 'I',
        'Ј' => 'J',
        'Ѕ' => 'S',
        'а' => 'a',
        'в' => 'b',
        'е' => 'e',
        'к' => 'k',
        'м' => 'm',
        'о' => 'o',
        'п' => 'n',
        'р' => 'p',
        'с' => 'c',
        'т' => 't',
        'у' => 'y',
        'х' => 'x',
        'і' => 'i',
        'ј' => 'j',
        'ѕ' => 's',
        'һ' => 'h',
        'ԁ' => 'd',
        'ԛ' => 'q',
        'ԝ' => 'w',
        'г' => 'r',
        _ => return None,
    })
}

const fn greek(character: char) -> Option<char> {
    Some(match character {
        'Α' => 'A',
        'Β' => 'B',
        'Ε' => 'E',
        'Ζ' => 'Z',
        'Η' => 'H',
        'Ι' => 'I',
        'Κ' => 'K',
        'Μ' => 'M',
        'Ν' => 'N',
        'Ο' => 'O',
        'Ρ' => 'P',
        'Τ' => 'T',
        'Υ' => 'Y',
        'Χ' => 'X',
        'α' => 'a',
        'ε' => 'e',
        'ι' => 'i',
        'κ' => 'k',
        'ν' => 'v',
        'ο' => 'o',
        'ρ' => 'p',
        'τ' => 't',
        'υ' => 'u',
        'χ' => 'x',
        _ => return None,
    })
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
