@interfaces@
/** A compiled network. */
export class Model {
  constructor(instance: WebAssembly.Instance);
  /** Views of the network's memory, to be filled before `compute`. */
  readonly inputs: InputViews;
  /** Views of the network's memory, filled by `compute`. */
  readonly outputs: Outputs;
  /** Run on what `inputs` hold; nothing is copied. */
  compute(): void;
  /** Run on named inputs, or on one array if there is one input; return copies of all outputs. */
  run(inputs: Inputs@one@): Outputs;
}

/** A network in a worker. */
export interface WorkerModel {
  run(inputs: Inputs@one@): Promise<Outputs>;
  terminate(): void;
}

export interface Port {
  name: string;
  shape: number[];
  type: string;
  array: string;
  address: number;
  length: number;
}

/** What the module takes and gives. */
export const description: {
  name: string;
  recipe: string;
  features: string;
  inputs: Port[];
  outputs: Port[];
};

export type Source = string | URL | Response | ArrayBuffer | Uint8Array | WebAssembly.Module;

/** Load the network: from model.wasm beside this file, an address, a Response, bytes, or a module. */
export function load(source?: Source | Promise<Source>): Promise<Model>;

/** Load the network in a worker, so that runs do not hold up the page. */
export function loadInWorker(source?: string | URL | ArrayBuffer | WebAssembly.Module): Promise<WorkerModel>;
