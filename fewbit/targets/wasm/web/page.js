const MOST_BARS = 12;
const byId = (id) => document.getElementById(id);
const decode = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
const bytesIn = (view) => new Uint8Array(view.buffer, view.byteOffset, view.byteLength);

function add(parent, tag, properties = {}, text = "") {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(text);
  parent.append(made);
  return made;
}

function state(term, text) {
  add(byId("facts"), "dt", {}, term);
  return add(byId("facts"), "dd", {}, text);
}

/** Fill the inputs with the embedded sample. */
function useSample(model) {
  description.inputs.forEach((port, i) => bytesIn(model.inputs[port.name]).set(decode(EMBEDDED.inputs[i])));
}

/** Run the sample, and return whether all outputs are what the interpreter has computed. */
function agrees(model) {
  useSample(model);
  model.compute();
  return description.outputs.every((port, i) => {
    const expected = decode(EMBEDDED.outputs[i]);
    const found = bytesIn(model.outputs[port.name]);
    return expected.length === found.length && expected.every((byte, k) => byte === found[k]);
  });
}

/** Return the least microseconds of a run; clocks of browsers are coarse, so of many together. */
function microseconds(model) {
  let count = 1;
  let least = Infinity;
  for (let round = 0; round < 12; round += 1) {
    const start = performance.now();
    for (let i = 0; i < count; i += 1) model.compute();
    const took = performance.now() - start;
    if (took < 8) count *= 2;
    else least = Math.min(least, (took * 1000) / count);
  }
  return Number.isFinite(least) ? least : 0;
}

/** Show the first output: as probabilities, if it is one of classes. */
function show(model) {
  const [port] = description.outputs;
  const values = Array.from(model.outputs[port.name], Number);
  const most = Math.max(...values);
  const powers = values.map((value) => Math.exp(value - most));
  const sum = powers.reduce((a, b) => a + b, 0);
  const ranked = values.map((_, i) => i).sort((a, b) => values[b] - values[a]);
  const shown = values.length <= MOST_BARS ? values.map((_, i) => i) : ranked.slice(0, MOST_BARS);
  byId("bars").replaceChildren();
  for (const i of shown) {
    const share = powers[i] / sum;
    const bar = add(byId("bars"), "div", { className: i === ranked[0] ? "bar best" : "bar" });
    add(bar, "span", { className: "name" }, EMBEDDED.labels[i] ?? String(i));
    const fill = add(add(bar, "div", { className: "track" }), "div", { className: "fill" });
    fill.style.width = `${100 * share}%`;
    add(bar, "span", { className: "value" }, `${(100 * share).toFixed(1)} %`);
  }
  document.body.dataset.best = EMBEDDED.labels[ranked[0]] ?? String(ranked[0]);
}

/** Return channels, height and width of an input that looks like an image. */
function imageOf(port) {
  const sizes = port.shape.slice(-3);
  if (port.shape.length === 2) {
    const side = Math.sqrt(port.shape[1]);
    return Number.isInteger(side) && side >= 16 ? { channels: 1, height: side, width: side } : null;
  }
  if (port.shape.length !== 4 || port.shape[0] !== 1) return null;
  const [channels, height, width] = sizes;
  return height === width && height >= 16 && (channels === 1 || channels === 3) ? { channels, height, width } : null;
}

/** A canvas to draw on; a drawing is centred and as large as those of MNIST. */
function drawingPane(model, port, { height, width }) {
  const side = 280;
  const canvas = add(byId("given"), "canvas", { width: side, height: side, className: "drawing", id: "drawing" });
  const pen = canvas.getContext("2d", { willReadFrequently: true });
  const clear = () => {
    pen.fillStyle = "#000";
    pen.fillRect(0, 0, side, side);
  };
  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    return [((event.clientX - box.left) * side) / box.width, ((event.clientY - box.top) * side) / box.height];
  };
  const read = () => {
    const pixels = pen.getImageData(0, 0, side, side).data;
    model.inputs[port.name].set(centred(pixels, side, canvas, width, height));
    model.compute();
    show(model);
  };
  Object.assign(pen, { lineWidth: 20, lineCap: "round", lineJoin: "round", strokeStyle: "#fff" });
  let last = null;
  canvas.onpointerdown = (event) => {
    if (event.isTrusted) canvas.setPointerCapture(event.pointerId);
    last = place(event);
    canvas.onpointermove(event);
  };
  canvas.onpointermove = (event) => {
    if (last === null) return;
    const next = place(event);
    pen.beginPath();
    pen.moveTo(...last);
    pen.lineTo(...next);
    pen.stroke();
    last = next;
    read();
  };
  canvas.onpointerup = canvas.onpointercancel = () => { last = null; };
  const buttons = add(byId("given"), "div", { className: "buttons" });
  add(buttons, "button", { id: "clear", onclick: () => { clear(); read(); } }, "Clear");
  add(buttons, "span", { className: "hint" }, "Draw with the mouse or a finger.");
  clear();
  read();
}

/** Return a drawing as an input: its bounding box fills 20 of 28 parts, its weight is in the middle. */
function centred(pixels, side, canvas, width, height) {
  let [left, top, right, bottom, sum, x, y] = [side, side, 0, 0, 0, 0, 0];
  for (let row = 0; row < side; row += 1) {
    for (let column = 0; column < side; column += 1) {
      const value = pixels[4 * (row * side + column)];
      if (value === 0) continue;
      [left, right] = [Math.min(left, column), Math.max(right, column + 1)];
      [top, bottom] = [Math.min(top, row), Math.max(bottom, row + 1)];
      sum += value;
      x += value * column;
      y += value * row;
    }
  }
  const result = new Float32Array(width * height);
  if (sum === 0) return result;
  const scale = ((20 / 28) * width) / Math.max(right - left, bottom - top);
  const small = Object.assign(document.createElement("canvas"), { width, height });
  const pen = small.getContext("2d", { willReadFrequently: true });
  pen.imageSmoothingQuality = "high";
  pen.fillRect(0, 0, width, height);
  pen.drawImage(canvas, width / 2 - (scale * x) / sum, height / 2 - (scale * y) / sum, scale * side, scale * side);
  const data = pen.getImageData(0, 0, width, height).data;
  return result.map((_, i) => data[4 * i] / 255);
}

/** A picture from a file. */
function picturePane(model, port, { height, width }) {
  const canvas = add(byId("given"), "canvas", { width, height });
  const pen = canvas.getContext("2d", { willReadFrequently: true });
  const buttons = add(byId("given"), "div", { className: "buttons" });
  const choose = add(buttons, "label", { className: "file" }, "Choose a picture");
  const input = add(choose, "input", { type: "file", accept: "image/*" });
  input.onchange = async () => {
    const picture = await createImageBitmap(input.files[0]);
    const side = Math.min(picture.width, picture.height);
    pen.drawImage(picture, (picture.width - side) / 2, (picture.height - side) / 2, side, side, 0, 0, width, height);
    const data = pen.getImageData(0, 0, width, height).data;
    const area = width * height;
    model.inputs[port.name].set(Float32Array.from({ length: 3 * area },
      (_, i) => data[4 * (i % area) + Math.floor(i / area)] / 255));
    model.compute();
    show(model);
  };
  add(buttons, "span", { className: "hint" }, "Pixels are given as 0 to 1.");
  samplePane(model, port, canvas, buttons);
}

/** The sample as a picture of its numbers, and others made up like it. */
function samplePane(model, port, canvas = null, buttons = null) {
  const [rows, columns] = [port.shape.at(-2) ?? 1, port.shape.at(-1) ?? 1];
  const surface = canvas ?? add(byId("given"), "canvas", { width: rows, height: columns });
  const pen = surface.getContext("2d");
  const draw = () => {
    const view = model.inputs[port.name];
    const low = view.reduce((a, b) => (a < b ? a : b), view[0]);
    const high = view.reduce((a, b) => (a > b ? a : b), view[0]);
    const isTurned = canvas === null;
    for (let i = 0; i < rows * columns; i += 1) {
      const share = Number(view[i] - low) / (Number(high - low) || 1);
      pen.fillStyle = `hsl(${260 - 220 * share} 75% ${12 + 62 * share}%)`;
      const [row, column] = [Math.floor(i / columns), i % columns];
      if (isTurned) pen.fillRect(row, columns - 1 - column, 1, 1);
      else pen.fillRect(column, row, 1, 1);
    }
    model.compute();
    show(model);
  };
  const bar = buttons ?? add(byId("given"), "div", { className: "buttons" });
  add(bar, "button", { id: "sample", onclick: () => { useSample(model); draw(); } }, "Sample");
  if (port.array === "Float32Array") {
    add(bar, "button", { id: "other", onclick: () => {
      const view = model.inputs[port.name];
      for (let i = 0; i < view.length; i += 1) {
        view[i] = Math.sqrt(-2 * Math.log(1 - Math.random())) * Math.cos(2 * Math.PI * Math.random());
      }
      draw();
    } }, "Another");
  }
  if (buttons === null) add(bar, "span", { className: "hint" }, `${port.name}: ${port.shape.join(" × ")}`);
  useSample(model);
  draw();
}

try {
  const code = decode(EMBEDDED.wasm);
  const model = await load(code);
  byId("about").append(`${description.recipe}, compiled by fewbit. The whole network is in this page: `
    + `${(code.length / 1024).toFixed(0)} KB of WebAssembly, weights included. Nothing leaves it.`);
  const isExact = agrees(model);
  const took = microseconds(model);
  const [port] = description.inputs;
  const image = description.inputs.length === 1 ? imageOf(port) : null;
  if (image?.channels === 1) drawingPane(model, port, image);
  else if (image !== null) picturePane(model, port, image);
  else samplePane(model, port);
  state("a run", `${took.toFixed(took < 100 ? 1 : 0)} µs`);
  state("agreement", isExact ? "to the bit with the interpreter, on a sample" : "DIFFERS from the interpreter")
    .className = isExact ? "" : "error";
  Object.assign(document.body.dataset, { exact: isExact, microseconds: took.toFixed(1) });
} catch (error) {
  byId("about").className = "error";
  byId("about").append(error.message);
  document.body.dataset.error = error.message;
}
