/** Places a graph in layers from left to right: every edge leads to the right, and neighbours stand near each other. */
import type { GraphNode } from './graph';

export const NODE_WIDTH = 184;
export const NODE_HEIGHT = 48;
const GAP_X = 56;
const GAP_Y = 14;
const SWEEPS = 6;

/** A node, or the place where an edge passes a layer. */
interface Slot {
  key: string;
  node: GraphNode | undefined;
  layer: number;
  before: string[];
  next: string[];
  y: number;
}

export function layOut(nodes: readonly GraphNode[]) {
  const layers = layersOf(nodes);
  const slots = new Map<string, Slot>();
  const columns: Slot[][] = [];
  const put = (slot: Slot) => {
    slots.set(slot.key, slot);
    columns[slot.layer] ??= [];
    columns[slot.layer]?.push(slot);
  };
  for (const node of nodes) {
    put({ key: node.key, node, layer: layers.get(node.key) ?? 0, before: [], next: [], y: 0 });
  }
  const routes: { from: string; to: string; over: string[] }[] = [];
  for (const { key, after } of nodes) {
    for (const from of after) {
      const over: string[] = [];
      for (let layer = (layers.get(from) ?? 0) + 1; layer < (layers.get(key) ?? 0); layer++) {
        const passed = `${from}\n${key}\n${layer}`;
        put({ key: passed, node: undefined, layer, before: [], next: [], y: 0 });
        over.push(passed);
      }
      const way = [from, ...over, key];
      for (let index = 1; index < way.length; index++) {
        slots.get(way[index - 1] as string)?.next.push(way[index] as string);
        slots.get(way[index] as string)?.before.push(way[index - 1] as string);
      }
      routes.push({ from, to: key, over });
    }
  }
  const height = arrange(columns, slots);
  const x = (slot: Slot) => slot.layer * (NODE_WIDTH + GAP_X);
  const isPoint = ({ node }: Slot) => node?.kind === 'point';
  const edges = routes.map(({ from, to, over }) => {
    const way = [from, ...over, to].map((key) => slots.get(key) as Slot);
    const points = way.flatMap((slot, index) => {
      const left: Point = [isPoint(slot) ? x(slot) + NODE_WIDTH / 2 : x(slot), slot.y];
      const right: Point = [isPoint(slot) ? x(slot) + NODE_WIDTH / 2 : x(slot) + NODE_WIDTH, slot.y];
      return index === 0 ? [right] : index === way.length - 1 ? [left] : [left, right];
    });
    return { from, to, path: pathOver(points) };
  });
  return {
    width: columns.length * (NODE_WIDTH + GAP_X) - GAP_X,
    height,
    nodes: [...slots.values()]
      .flatMap((slot) => (slot.node ? [{ node: slot.node, x: x(slot), y: slot.y }] : []))
      .sort((a, b) => a.x - b.x || a.y - b.y),
    edges,
  };
}

/** The number of edges on the longest way to each node. */
function layersOf(nodes: readonly GraphNode[]): Map<string, number> {
  const byKey = new Map(nodes.map((node) => [node.key, node]));
  const layers = new Map<string, number>();
  const layerOf = (key: string): number => {
    const known = layers.get(key);
    if (known !== undefined) return known;
    const layer = Math.max(-1, ...(byKey.get(key)?.after ?? []).map(layerOf)) + 1;
    layers.set(key, layer);
    return layer;
  };
  for (const { key } of nodes) layerOf(key);
  return layers;
}

/** Orders each column by the middle of its neighbours, to and fro, then moves slots as near to them as possible. */
function arrange(columns: readonly Slot[][], slots: ReadonlyMap<string, Slot>): number {
  const size = (slot: Slot) => (slot.node && slot.node.kind !== 'point' ? NODE_HEIGHT : 12);
  for (const column of columns) stack(column, size);
  const middle = (keys: readonly string[]) =>
    keys.reduce((sum, key) => sum + (slots.get(key)?.y ?? 0), 0) / keys.length;
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const isForward = sweep % 2 === 0;
    for (const column of isForward ? columns : [...columns].reverse()) {
      const wanted = new Map(
        column.map((slot) => {
          const keys = isForward ? slot.before : slot.next;
          return [slot, keys.length === 0 ? slot.y : middle(keys)];
        }),
      );
      const want = (slot: Slot) => wanted.get(slot) ?? 0;
      column.sort((a, b) => want(a) - want(b));
      settle(column, want, size);
    }
  }
  const all = columns.flat();
  const top = Math.min(...all.map((slot) => slot.y - size(slot) / 2));
  for (const slot of all) slot.y -= top;
  return Math.max(...all.map((slot) => slot.y + size(slot) / 2));
}

function stack(column: readonly Slot[], size: (slot: Slot) => number): void {
  let y = 0;
  for (const slot of column) {
    slot.y = y + size(slot) / 2;
    y += size(slot) + GAP_Y;
  }
}

/** Where each wants to be, pushed apart: down from the top, then back up by half of what the last was pushed. */
function settle(column: readonly Slot[], want: (slot: Slot) => number, size: (slot: Slot) => number): void {
  let free = Number.NEGATIVE_INFINITY;
  let pushed = 0;
  for (const slot of column) {
    const at = Math.max(want(slot), free + size(slot) / 2);
    pushed = Math.max(pushed, at - want(slot));
    slot.y = at;
    free = at + size(slot) / 2 + GAP_Y;
  }
  for (const slot of column) slot.y -= pushed / 2;
}

type Point = readonly [x: number, y: number];

/** Straight where it passes nodes, curved between them. */
function pathOver(points: readonly Point[]): string {
  const [[x, y] = [0, 0], ...rest] = points;
  let [lastX, lastY] = [x, y];
  let path = `M${round(x)},${round(y)}`;
  for (const [toX, toY] of rest) {
    const bend = (toX - lastX) / 2;
    path +=
      lastY === toY
        ? `H${round(toX)}`
        : `C${round(lastX + bend)},${round(lastY)} ${round(toX - bend)},${round(toY)} ${round(toX)},${round(toY)}`;
    [lastX, lastY] = [toX, toY];
  }
  return path;
}

const round = (value: number) => Math.round(value * 10) / 10;
