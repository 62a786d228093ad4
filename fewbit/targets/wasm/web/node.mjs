// Runs a model for Python: inputs come from standard input, one after another, and outputs go to
// standard output. With a number of runs, it prints the least microseconds of one of them.
import { readSync, writeSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [folder, runs] = process.argv.slice(2);
const { load } = await import(pathToFileURL(`${folder}/model.js`));
const model = await load();
const bytesOf = (view) => new Uint8Array(view.buffer, view.byteOffset, view.byteLength);

/** Fill a view from standard input; return whether there was as much. */
function fill(view) {
  const bytes = bytesOf(view);
  let done = 0;
  while (done < bytes.length) {
    let read = 0;
    try {
      read = readSync(0, bytes, done, bytes.length - done);
    } catch (error) {
      if (error.code === "EAGAIN") continue;
      if (error.code !== "EOF") throw error;
    }
    if (read === 0) return false;
    done += read;
  }
  return true;
}

function write(view) {
  const bytes = bytesOf(view);
  let done = 0;
  while (done < bytes.length) done += writeSync(1, bytes, done);
}

function time(count) {
  let least = Infinity;
  for (let round = 0; round < 10; round += 1) {
    const start = performance.now();
    for (let i = 0; i < count; i += 1) model.compute();
    least = Math.min(least, (performance.now() - start) / count);
  }
  return least * 1000;
}

const inputs = Object.values(model.inputs);
if (runs !== undefined) {
  process.stdout.write(`${time(Number(runs))}\n`);
} else {
  while (inputs.every(fill)) {
    model.compute();
    Object.values(model.outputs).forEach(write);
  }
}
