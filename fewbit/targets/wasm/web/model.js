// @name@, compiled by fewbit @version@. There is nothing else to install: this file and model.wasm.

/** What the module takes and gives: names, shapes, types, and where they lie in its memory. */
export const description = @description@;

const ARRAYS = {
  Float32Array, Float64Array, Int8Array, Int16Array, Int32Array, BigInt64Array,
  Uint8Array, Uint16Array, Uint32Array, BigUint64Array,
};
const WORKER = "fewbit model";

function viewOf(memory, port) {
  return new ARRAYS[port.array](memory.buffer, port.address, port.length);
}

/** A compiled network. `inputs` and `outputs` are views of its memory, by name. */
export class Model {
  constructor(instance) {
    const { memory, run } = instance.exports;
    const views = (ports) => Object.fromEntries(ports.map((port) => [port.name, viewOf(memory, port)]));
    this.inputs = views(description.inputs);
    this.outputs = views(description.outputs);
    this.compute = run;
  }

  /** Run on named inputs, or on one array if there is one input; return copies of all outputs. */
  run(given) {
    for (const [name, values] of Object.entries(named(given))) {
      const view = this.inputs[name];
      if (values.length !== view.length) {
        throw new RangeError(`input '${name}' has ${values.length} elements, not ${view.length}`);
      }
      view.set(values);
    }
    this.compute();
    return Object.fromEntries(Object.entries(this.outputs).map(([name, view]) => [name, view.slice()]));
  }
}

/** Return inputs by name, all of which must be there. */
function named(given) {
  const names = description.inputs.map((port) => port.name);
  const isOne = ArrayBuffer.isView(given) || Array.isArray(given);
  const inputs = isOne && names.length === 1 ? { [names[0]]: given } : given;
  const isObject = typeof inputs === "object" && inputs !== null && !ArrayBuffer.isView(inputs);
  for (const name of names) {
    if (!isObject || inputs[name]?.length === undefined) {
      throw new TypeError(`there is no input '${name}'; inputs are ${names.join(", ")}`);
    }
  }
  for (const name of Object.keys(inputs)) {
    if (!names.includes(name)) {
      throw new TypeError(`'${name}' is no input; inputs are ${names.join(", ")}`);
    }
  }
  return inputs;
}

/** Load the network: from model.wasm beside this file, an address, a Response, bytes, or a module. */
export async function load(source = new URL("./model.wasm", import.meta.url)) {
  const code = await bytesOf(await source);
  try {
    const made = await WebAssembly.instantiate(code, {});
    return new Model(made.instance ?? made);
  } catch (error) {
    if (!(error instanceof WebAssembly.CompileError) || !description.features) throw error;
    throw new Error(`this engine does not run WebAssembly with ${description.features}; ` +
      `compile the network with -t wasm: ${error.message}`, { cause: error });
  }
}

async function bytesOf(source) {
  if (source instanceof WebAssembly.Module || source instanceof ArrayBuffer || ArrayBuffer.isView(source)) {
    return source;
  }
  if (typeof Response !== "undefined" && source instanceof Response) return bytesOfResponse(source);
  const url = new URL(source, import.meta.url);
  if (url.protocol === "file:" && typeof process !== "undefined") {
    const { readFile } = await import("node:fs/promises");
    return readFile(url);
  }
  return bytesOfResponse(await fetch(url));
}

async function bytesOfResponse(response) {
  if (!response.ok) throw new Error(`${response.url} was not found: status ${response.status}`);
  return response.arrayBuffer();
}

/** Load the network in a worker, so that runs do not hold up the page. */
export async function loadInWorker(source = new URL("./model.wasm", import.meta.url)) {
  const worker = new Worker(import.meta.url, { type: "module", name: WORKER });
  const waiting = new Map();
  let count = 0;
  const fail = (error) => {
    for (const { reject } of waiting.values()) reject(error);
    waiting.clear();
  };
  worker.onerror = (event) => fail(new Error(event.message || "the worker could not be started"));
  worker.onmessage = ({ data: { number, result, error } }) => {
    const { resolve, reject } = waiting.get(number);
    waiting.delete(number);
    if (error === undefined) resolve(result);
    else reject(new Error(error));
  };
  const ask = (message) =>
    new Promise((resolve, reject) => {
      count += 1;
      waiting.set(count, { resolve, reject });
      worker.postMessage({ number: count, ...message });
    });
  await ask({ source: source instanceof URL ? source.href : source });
  return {
    run: (inputs) => ask({ inputs }),
    terminate() {
      worker.terminate();
      fail(new Error("the worker was terminated"));
    },
  };
}

if (typeof WorkerGlobalScope !== "undefined" && self instanceof WorkerGlobalScope && self.name === WORKER) {
  let model;
  self.onmessage = async ({ data: { number, source, inputs } }) => {
    try {
      if (source !== undefined) model = await load(source);
      const result = source === undefined ? model.run(inputs) : undefined;
      self.postMessage({ number, result });
    } catch (error) {
      self.postMessage({ number, error: error.message });
    }
  };
}
