// What resvg draws of an SVG, on a transparent ground and without the system's fonts:
//
//   {"svg": "<svg …", "width": 32}  →  {"width", "height", "png": base64}
//                                      {"error": "…"}
//
// width, in pixels, may be left out: then the SVG's own size counts.

import { Resvg } from '@resvg/resvg-js';
import { eachLine } from './lines.mjs';

await eachLine(line => {
  const { svg, width } = JSON.parse(line);
  try {
    const image = new Resvg(svg, {
      font: { loadSystemFonts: false },
      ...(width && { fitTo: { mode: 'width', value: width } }),
    }).render();
    return { width: image.width, height: image.height, png: image.asPng().toString('base64') };
  } catch (error) {
    return { error: error.message };
  }
});
