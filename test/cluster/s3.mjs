/**
 * A bucket for tests: what a cluster needs of S3, in memory. Conditional writes and deletions, ranges, lists. Each member may have
 * a port of its own, which can be cut. Signatures are not checked.
 */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';

const MAX_KEYS = 1_000;

const escaped = (text) => text.replace(/[<>&]/g, (char) => `&#${char.charCodeAt(0)};`);

export class Bucket {
  /** Objects by key. */
  objects = new Map();
  /** Requests answered, by method. */
  requests = {};
  #doors = [];

  /** Opens a port. @returns its address, and what cuts it: connections stay open, and nothing is answered */
  async door() {
    const held = { isCut: false };
    const server = createServer((request, response) => {
      if (held.isCut) return;
      this.#take(request, response).catch((error) => {
        response.writeHead(500).end(String(error));
      });
    });
    server.keepAliveTimeout = 60_000;
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    this.#doors.push(server);
    return {
      url: `http://127.0.0.1:${server.address().port}`,
      cut() {
        held.isCut = true;
      },
      heal() {
        held.isCut = false;
        // What was sent meanwhile is lost: whoever sent it connects again.
        server.closeAllConnections();
      },
    };
  }

  close() {
    for (const server of this.#doors) {
      server.closeAllConnections();
      server.close();
    }
  }

  async #take(request, response) {
    const { pathname, searchParams } = new URL(request.url, 'http://bucket');
    const key = decodeURIComponent(pathname.slice(1)).split('/').slice(1).join('/');
    const pieces = [];
    for await (const piece of request) pieces.push(piece);
    this.requests[request.method] = (this.requests[request.method] ?? 0) + 1;
    const { method, headers } = request;
    const found = this.objects.get(key);
    const refuse = (status, code) =>
      response.writeHead(status, { 'Content-Type': 'application/xml' }).end(`<Error><Code>${code}</Code></Error>`);
    if (method === 'GET' && key === '') return this.#list(searchParams, response);
    const { 'if-match': wanted, 'if-none-match': unwanted } = headers;
    if (method === 'PUT' || method === 'DELETE') {
      if (unwanted === '*' && found) return refuse(412, 'PreconditionFailed');
      if (wanted !== undefined && !found) return refuse(404, 'NoSuchKey');
      if (wanted !== undefined && wanted !== found.etag) return refuse(412, 'PreconditionFailed');
    }
    if (method === 'PUT') {
      const body = Buffer.concat(pieces);
      const etag = `"${createHash('md5').update(body).digest('hex')}"`;
      this.objects.set(key, { body, etag, at: new Date() });
      return response.writeHead(200, { ETag: etag }).end();
    }
    if (method === 'DELETE') {
      this.objects.delete(key);
      return response.writeHead(204).end();
    }
    if (!found) return method === 'HEAD' ? response.writeHead(404).end() : refuse(404, 'NoSuchKey');
    const { body, etag, at } = found;
    const [, from, to] = /^bytes=(\d+)-(\d*)$/.exec(headers.range ?? '') ?? [];
    const part = from === undefined ? body : body.subarray(Number(from), to === '' ? undefined : Number(to) + 1);
    const range =
      from === undefined ? {} : { 'Content-Range': `bytes ${from}-${Number(from) + part.length - 1}/${body.length}` };
    response.writeHead(from === undefined ? 200 : 206, {
      ...{ ETag: etag, 'Last-Modified': at.toUTCString(), 'Content-Length': part.length, ...range },
    });
    return response.end(method === 'HEAD' ? undefined : part);
  }

  #list(query, response) {
    const [prefix, delimiter] = [query.get('prefix') ?? '', query.get('delimiter') ?? ''];
    const after = query.get('continuation-token') ?? query.get('start-after') ?? '';
    const most = Math.min(MAX_KEYS, Number(query.get('max-keys') ?? MAX_KEYS));
    const folders = new Set();
    const found = [];
    let isCut = false;
    let last = '';
    for (const key of [...this.objects.keys()].sort()) {
      if (!key.startsWith(prefix) || key <= after) continue;
      const end = delimiter === '' ? -1 : key.indexOf(delimiter, prefix.length);
      const folder = end < 0 ? undefined : key.slice(0, end + delimiter.length);
      if (folder !== undefined && (folders.has(folder) || after.startsWith(folder))) continue;
      if (found.length + folders.size >= most) {
        isCut = true;
        break;
      }
      if (folder === undefined) found.push(key);
      else folders.add(folder);
      last = folder === undefined ? key : `${folder}\uffff`;
    }
    const contents = found.map((key) => {
      const { body, etag, at } = this.objects.get(key);
      const facts = `<LastModified>${at.toISOString()}</LastModified><ETag>${escaped(etag)}</ETag><Size>${body.length}</Size>`;
      return `<Contents><Key>${escaped(key)}</Key>${facts}<StorageClass>STANDARD</StorageClass></Contents>`;
    });
    const prefixes = [...folders].map((one) => `<CommonPrefixes><Prefix>${escaped(one)}</Prefix></CommonPrefixes>`);
    const next = isCut ? `<NextContinuationToken>${escaped(last)}</NextContinuationToken>` : '';
    const counts = `<KeyCount>${found.length + folders.size}</KeyCount><MaxKeys>${most}</MaxKeys><IsTruncated>${isCut}</IsTruncated>`;
    response
      .writeHead(200, { 'Content-Type': 'application/xml' })
      .end(
        `<?xml version="1.0" encoding="UTF-8"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>bucket</Name>` +
          `<Prefix>${escaped(prefix)}</Prefix>${counts}${next}${contents.join('')}${prefixes.join('')}</ListBucketResult>`,
      );
  }
}
