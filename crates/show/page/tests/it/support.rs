//! Finds parts of pages.

/// The drawings of a page: the id of each, and its SVG with its legend.
pub(crate) fn charts(html: &str) -> Vec<(String, String)> {
    let sections = html.split("<section id=\"").skip(1);
    let drawn = sections.filter(|section| section.contains("<svg role=\"img\""));
    drawn
        .map(|section| {
            let id = section.split('"').next().unwrap();
            let figure = section.split("<figure>").nth(1).unwrap();
            (id.to_owned(), figure.split("</figure>").next().unwrap().to_owned())
        })
        .collect()
}

/// Marks of data in a drawing: circles, and paths and areas that are no part of the frame.
pub(crate) fn marks(svg: &str) -> usize {
    let drawing = svg.split("</svg>").next().unwrap();
    let paths = drawing.split("<path ").skip(1).filter(|path| {
        let d = path.split("d=\"").nth(1).and_then(|d| d.split('"').next()).unwrap();
        !d.is_empty()
    });
    paths.count() + drawing.matches("<circle").count() + drawing.matches("<rect").count()
}

/// The cells of the rows of a chart's table.
pub(crate) fn rows(html: &str, id: &str) -> Vec<Vec<String>> {
    let section = html.split(&format!("<section id=\"{id}\"")).nth(1).unwrap();
    let table = section.split("<tbody>").nth(1).unwrap().split("</tbody>").next().unwrap();
    table
        .split("<tr>")
        .skip(1)
        .map(|row| -> Vec<String> {
            let cells = row.split("<td>").skip(1);
            cells.map(|cell| cell.split("</td>").next().unwrap().to_owned()).collect()
        })
        .collect()
}
