//! Numbers, times and dates as a person reads them: three significant digits, and the unit that
//! suits them. Negative numbers, such as differences, keep their sign.

use std::time::{Duration, UNIX_EPOCH};

use plimsoll_metrics::{
    Bias, BoundedFigure, DistributionSummary, Middle, Quantile, Refusal, TokenRate, samples_needed,
};

pub use plimsoll_rules::number::{count, digits, percent, seconds, share, time};
use plimsoll_rules::number::{groups, unit};

/// Stands for a value that is not known.
pub const DASH: &str = "-";

/// Formats a value, or [`DASH`] if it is missing.
pub fn or_dash<T>(value: Option<T>, format: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| DASH.to_owned(), format)
}

/// [`time`] from microseconds: `850us`.
pub fn time_us(micros: f64) -> String {
    time(micros / 1e3)
}

/// Two times from milliseconds, in the unit that suits `millis`: `5.70, 6.20`.
pub fn range(millis: f64, low: f64, high: f64) -> String {
    let (_, size) = unit(millis);
    format!("{}, {}", digits(low / size), digits(high / size))
}

/// A time and its interval from milliseconds, in the unit that suits the largest of them and with
/// the decimals that the interval needs: `143us [138, 149]`, `1.4301ms [1.4288, 1.4314]`. An end
/// that is not 0 does not read 0.
pub fn with_interval(millis: f64, low: f64, high: f64) -> String {
    let largest = millis.abs().max(low.abs()).max(high.abs());
    let (unit, size) = unit(largest);
    let ends = [low, high].map(|end| 2.0 * end.abs()).into_iter().filter(|end| *end > 0.0);
    let finest = ends.fold((high - low) / 2.0, f64::min).max(FINEST);
    let decimals = (high > low).then(|| decimals(finest / size));
    let [value, low, high] = [millis, low, high].map(|time| match decimals {
        Some(decimals) => fixed(time / size, decimals),
        None => digits(time / size),
    });
    format!("{value}{unit} [{low}, {high}]")
}

/// No interval is shown as narrower, in milliseconds: clocks count nanoseconds.
const FINEST: f64 = 2e-6;

/// The decimals whose last one is at most half of `half_width`, which is not 0.
#[expect(clippy::cast_possible_truncation, reason = "between 0 and the most decimals")]
fn decimals(half_width: f64) -> usize {
    const MOST: f64 = 9.0;
    (-(half_width / 2.0).log10()).ceil().clamp(0.0, MOST) as usize
}

/// A number with the given decimals, its digits before the point in groups; never `-0`.
fn fixed(number: f64, decimals: usize) -> String {
    let text = format!("{:.decimals$}", number.abs());
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let is_zero = text.bytes().all(|byte| matches!(byte, b'0' | b'.'));
    let sign = if number < 0.0 && !is_zero { "-" } else { "" };
    format!("{sign}{}{rest}", groups(whole))
}

/// A p value: `p 0.125`, `p < 0.001`.
pub fn p_value(p: f64) -> String {
    if p < 0.001 { "p < 0.001".to_owned() } else { format!("p {p:.3}") }
}

/// A difference of times and its interval: [`with_interval`] with the sign of the difference.
pub fn difference(millis: f64, low: f64, high: f64) -> String {
    let text = with_interval(millis, low, high);
    let shown = text.split(" [").next().unwrap_or_default();
    let is_zero = !shown.bytes().any(|byte| matches!(byte, b'1'..=b'9'));
    if millis > 0.0 && !is_zero { format!("+{text}") } else { text }
}

/// [`time`] from milliseconds, or `-` if it is missing.
pub fn time_or_dash(millis: Option<f64>) -> String {
    or_dash(millis, time)
}

/// A time with its limits, or `-` if it is missing: `96us (-12us)` with a measurement error of at
/// least 1 %, `>= 96us` if requests without an end may be longer.
pub fn limited_time(figure: Option<BoundedFigure>) -> String {
    or_dash(figure, |figure| {
        // No more of it than it is.
        let [value, bound] = [figure.value, figure.bound.min(figure.value)].map(time);
        match figure.refused {
            Some(Refusal::Censored) => format!(">= {}", time(figure.limits(Bias::Adds)[0])),
            _ if figure.has_notable_bound() => format!("{value} (-{bound})"),
            _ => value,
        }
    })
}

/// A median; of fewer values than [`samples_needed`] with its interval, `312ms [298, 330]`, or
/// below 6 with the smallest and the largest, `312ms (298 to 330)`.
pub fn middle(middle: &Middle) -> String {
    let Middle { figure, ends: [low, high], count } = *middle;
    let text = limited_time(Some(figure));
    let is_enough = count < 2 || count >= samples_needed(0.5);
    if is_enough || figure.refused.is_some() || figure.has_notable_bound() {
        return text;
    }
    let ends = range(figure.value, low, high);
    if count < Middle::LEAST {
        format!("{text} ({})", ends.replace(", ", " to "))
    } else {
        format!("{text} [{ends}]")
    }
}

/// A percentile with its limits; of too few values what it exceeds, `>= 298ms`.
pub fn percentile(times: &DistributionSummary, quantile: &Quantile) -> String {
    let figure = times.figure(quantile);
    let limit = if figure.is_none() { times.lower_limit(quantile) } else { None };
    limit.map_or_else(|| limited_time(figure), |limit| format!(">= {}", time(limit)))
}

/// A rate with its limit, or `-` if it is missing: `1,200 (+60)` if the generator may have held
/// back at least 1 % more, `>= 1,200` if that is as much as the rate itself, and `1,200 [1,050,
/// 1,340]` if the number of answers leaves more than 5 % open.
pub fn limited_rate(figure: Option<BoundedFigure>) -> String {
    or_dash(figure, |figure| {
        let [value, bound] = [figure.value, figure.bound].map(digits);
        match figure {
            figure if figure.interval.is_some() => {
                let [low, high] = figure.limits(Bias::Takes).map(digits);
                format!("{value} [{low}, {high}]")
            }
            figure if figure.bound >= figure.value && figure.bound > 0.0 => format!(">= {value}"),
            figure if figure.has_notable_bound() => format!("{value} (+{bound})"),
            _ => value,
        }
    })
}

/// The time of a figure, or `-` if it is missing, for tables that report the limits elsewhere.
/// Marked `!` if its measurement error exceeds 5 %, `?` if requests without an end may be longer.
pub fn figure(figure: Option<BoundedFigure>) -> String {
    or_dash(figure, |figure| format!("{}{}", time(figure.value), figure_mark(&figure)))
}

/// The mark behind a refused figure.
const fn figure_mark(figure: &BoundedFigure) -> &'static str {
    match figure.refused {
        Some(Refusal::Generator) => "!",
        Some(Refusal::Censored) => "?",
        None => "",
    }
}

/// The time of a figure as in [`with_share`], or `-` if it is missing.
pub fn time_with_share(figure: Option<BoundedFigure>) -> String {
    or_dash(figure, |figure| with_share(time(figure.value), &figure, "-"))
}

/// A rate per second as in [`with_share`], or `-` if it is missing.
pub fn rate_with_share(figure: Option<BoundedFigure>) -> String {
    or_dash(figure, |figure| with_share(digits(figure.value), &figure, "+"))
}

/// A value, followed by its relative measurement error if it is refused: `535us (-21%)`, or with
/// the sign `+` for a rate `52,100/s (+9%)`. If requests without an end may increase it, or it may
/// be twice as large, `>= 535us`.
pub fn with_share(value: String, figure: &BoundedFigure, sign: &str) -> String {
    let is_doubled = sign == "+" && figure.bound >= figure.value;
    match figure.refused {
        Some(Refusal::Generator) if figure.value > 0.0 && !is_doubled => {
            let share = 100.0 * figure.bound / figure.value;
            format!("{value} ({sign}{}%)", groups(&format!("{share:.0}")))
        }
        Some(_) => format!(">= {value}"),
        None => value,
    }
}

/// Whether a cell of a table has a limit, as [`with_share`] writes it.
pub(crate) fn has_limit(cell: &str) -> bool {
    cell.starts_with(">= ") || (cell.ends_with("%)") && cell.contains(" ("))
}

/// A rate per second as in [`digits`], or `n/a` without a time to divide by.
pub fn rate(per_second: Option<f64>) -> String {
    per_second.map_or_else(|| "n/a".to_owned(), digits)
}

/// [`rate`] of a figure, marked if it is refused.
pub fn rate_figure(figure: Option<BoundedFigure>) -> String {
    let mark = figure.as_ref().map_or("", figure_mark);
    format!("{}{mark}", rate(figure.map(|figure| figure.value)))
}

/// Output tokens per second as `rate` writes a figure: `~` where some are estimated, `+` where some
/// answers told no count.
pub fn token_rate(tokens: &TokenRate, rate: impl Fn(Option<BoundedFigure>) -> String) -> String {
    let estimated = if tokens.is_estimated { "~" } else { "" };
    let partial = if tokens.is_partial { "+" } else { "" };
    format!("{estimated}{}{partial}", rate(Some(tokens.figure)))
}

/// [`share`], or `n/a` of nothing.
pub fn share_of(value: Option<f64>) -> String {
    value.map_or_else(|| "n/a".to_owned(), share)
}

/// A rank, or the range of ranks of a tie: `1`, `2-3`.
pub fn rank(best: usize, worst: usize) -> String {
    if best == worst { best.to_string() } else { format!("{best}-{worst}") }
}

/// A number of bytes in decimal multiples: `950 B`, `1.20 MB`.
pub fn bytes(bytes: f64) -> String {
    for (unit, size) in [("GB", 1e9), ("MB", 1e6), ("kB", 1e3)] {
        if bytes >= size * 0.9995 {
            return format!("{} {unit}", digits(bytes / size));
        }
    }
    format!("{bytes:.0} B")
}

/// Lines of at most `width` characters, broken at spaces. Intervals, `[5.70, 6.20]`, are not
/// broken.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in words(text) {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(&word);
            }
            _ => lines.push(word),
        }
    }
    lines
}

/// The words; an interval is one.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match words.last_mut() {
            Some(low) if low.starts_with('[') && low.ends_with(',') && word.contains(']') => {
                low.push(' ');
                low.push_str(word);
            }
            _ => words.push(word.to_owned()),
        }
    }
    words
}

/// The mark of a text that was cut.
pub const CUT: &str = "…";

/// A text of at most `width` characters; the end of a longer one is left out, even within a word.
pub fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let short: String = text.chars().take(width.saturating_sub(1)).collect();
    if width > 0 { short + CUT } else { short }
}

/// A moment in nanoseconds since 1970 UTC, to the second: `2026-11-21 01:23:45 UTC`.
pub fn utc(unix_ns: u64) -> String {
    rfc3339(unix_ns).replace('T', " ").replace('Z', " UTC")
}

/// A moment in nanoseconds since 1970 UTC as names of folders have it: `20261121T012345Z`.
pub fn utc_compact(unix_ns: u64) -> String {
    rfc3339(unix_ns).replace(['-', ':'], "")
}

/// `2026-11-21T01:23:45Z`.
fn rfc3339(unix_ns: u64) -> String {
    humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_nanos(unix_ns)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_digits_and_the_unit_that_suits_them() {
        for (millis, shown) in [
            (0.0, "0ns"),
            (0.000_007, "7.00ns"),
            (0.000_512, "512ns"),
            (0.041_234, "41.2us"),
            (0.017_4, "17.4us"),
            (0.999_7, "1.00ms"),
            (1.0, "1.00ms"),
            (12.345, "12.3ms"),
            (999.4, "999ms"),
            (999.6, "1.00s"),
            (60_000.0, "60.0s"),
            (61_400.0, "61.4s"),
            (3_600_000.0, "3,600s"),
        ] {
            assert_eq!(time(millis), shown, "{millis} ms");
        }
    }

    #[test]
    fn what_proves_nothing_alone_has_its_limit_behind_it() {
        let of =
            |value, bound, refused| Some(BoundedFigure { value, bound, interval: None, refused });
        let generator = Some(Refusal::Generator);
        for (shown, text) in [
            (time_with_share(of(0.535, 0.112, generator)), "535us (-21%)"),
            (time_with_share(of(0.535, 0.535, generator)), "535us (-100%)"),
            (time_with_share(of(0.535, 0.02, None)), "535us"),
            (time_with_share(of(0.535, 0.0, Some(Refusal::Censored))), ">= 535us"),
            (time_with_share(None), "-"),
            (rate_with_share(of(52_100.0, 4_700.0, generator)), "52,100 (+9%)"),
            (rate_with_share(of(100.0, 1_234.0, generator)), ">= 100"),
            (rate_with_share(of(0.0, 3.0, generator)), ">= 0"),
            (rate_with_share(of(52_100.0, 0.0, None)), "52,100"),
            (rate_with_share(None), "-"),
        ] {
            assert_eq!(shown, text);
            let limited = shown.contains('%') || shown.starts_with(">=");
            assert_eq!(has_limit(&shown), limited, "{shown}");
        }
        assert!(!has_limit("21,749 ±2%") && !has_limit("91.1%") && !has_limit("a (b)"));
    }

    #[test]
    fn differences_keep_their_sign() {
        for (found, shown) in [
            (time(-0.0032), "-3.20us"),
            (time_us(-3.2), "-3.20us"),
            (time(-1_500.0), "-1.50s"),
            (digits(-12.34), "-12.3"),
            (digits(-0.000_1), "0"),
            (digits(-0.004), "0.00"),
            (digits(-21_989.4), "-21,989"),
            (percent(-0.5), "-50.0%"),
        ] {
            assert_eq!(found, shown);
        }
    }

    #[test]
    fn intervals_have_the_decimals_that_they_need() {
        for (found, shown) in [
            (difference(0.143, 0.138, 0.149), "+143us [138, 149]"),
            (difference(0.000_9, -0.003, 0.004), "+1us [-3, 4]"),
            (difference(-0.000_03, -0.001_3, 0.001_07), "0.0us [-1.3, 1.1]"),
            (difference(1.43, 1.395, 1.465), "+1.43ms [1.40, 1.47]"),
            (difference(1.430_1, 1.428_8, 1.431_4), "+1.4301ms [1.4288, 1.4314]"),
            (difference(-1.43, -1.47, -0.9), "-1.4ms [-1.5, -0.9]"),
            (difference(7.0, -3_000.0, 4_000.0), "0s [-3, 4]"),
            (difference(11_385.0, 220.7, 22_900.0), "+11.4s [0.2, 22.9]"),
            (difference(0.0, 0.0, 0.0), "0ns [0, 0]"),
            (difference(0.0, -1e-15, 1e-15), "0ns [0, 0]"),
            (with_interval(1.5, 1.5, 1.5), "1.50ms [1.50, 1.50]"),
            (with_interval(5_000_000.0, 4_000_000.0, 6_000_000.0), "5,000s [4,000, 6,000]"),
        ] {
            assert_eq!(found, shown);
        }
        assert_eq!((p_value(0.125).as_str(), p_value(1e-9).as_str()), ("p 0.125", "p < 0.001"));
    }

    #[test]
    fn percentages_have_three_digits() {
        for (value, shown) in [
            (0.0, "0%"),
            (0.000_02, "<0.01%"),
            (0.000_4, "0.04%"),
            (0.0836, "8.36%"),
            (0.5, "50.0%"),
            (0.9994, "99.9%"),
            // 20 of 41,923 are not part of it.
            (0.999_523, "99.95%"),
            (0.999_999, ">99.99%"),
            (1.0, "100%"),
            (1.25, "125%"),
        ] {
            assert_eq!(percent(value), shown);
        }
        assert_eq!(
            (or_dash(Some(0.5), percent).as_str(), or_dash(None, percent).as_str()),
            ("50.0%", "-")
        );
    }

    #[test]
    fn only_none_is_zero_percent_and_only_all_is_a_hundred() {
        for (value, shown) in [
            (0.0, "0%"),
            (0.000_001, "<0.01%"),
            (0.0123, "1.23%"),
            (0.999_99, ">99.99%"),
            (1.0, "100%"),
        ] {
            assert_eq!(share(value), shown);
        }
    }

    #[test]
    fn counts_and_bytes_are_grouped() {
        assert_eq!((count(7).as_str(), count(1_234_567).as_str()), ("7", "1,234,567"));
        assert_eq!((bytes(950.0).as_str(), bytes(1_234_567.0).as_str()), ("950 B", "1.23 MB"));
        assert_eq!((bytes(999_900.0).as_str(), digits(999.6).as_str()), ("1.00 MB", "1,000"));
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        // From `date -u -d @N`.
        for (unix, shown) in [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_782_399, "2000-02-28 23:59:59 UTC"),
            (951_782_400, "2000-02-29 00:00:00 UTC"),
            (1_763_688_225, "2025-11-21 01:23:45 UTC"),
            (4_107_542_400, "2100-03-01 00:00:00 UTC"),
        ] {
            assert_eq!(utc(unix * 1_000_000_000), shown);
        }
    }

    #[test]
    fn names_of_folders_have_dates_without_punctuation() {
        // From `date -u -d @N +%Y%m%dT%H%M%SZ`.
        for (seconds, text) in [
            (0, "19700101T000000Z"),
            (951_782_399, "20000228T235959Z"),
            (951_782_400, "20000229T000000Z"),
            (951_868_800, "20000301T000000Z"),
            (1_709_208_000, "20240229T120000Z"),
            (1_798_761_599, "20261231T235959Z"),
            (4_107_542_400, "21000301T000000Z"),
        ] {
            assert_eq!(utc_compact(seconds * 1_000_000_000 + 999), text);
        }
    }

    #[test]
    fn lines_are_broken_between_words() {
        assert_eq!(wrap("a bb ccc dddd", 6), ["a bb", "ccc", "dddd"]);
        assert_eq!(wrap("unbreakable", 4), ["unbreakable"]);
        assert_eq!(wrap("by 5us [3, 7].", 10), ["by 5us", "[3, 7]."]);
    }

    #[test]
    fn a_name_is_cut_where_it_does_not_fit() {
        assert_eq!((cut("unbreakable", 4).as_str(), cut("four", 4).as_str()), ("unb…", "four"));
    }
}
