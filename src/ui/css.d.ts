/** Styles of a package, as text: `import text from 'uplot/dist/uPlot.min.css' with { type: 'text' }`. */
declare module '*.css' {
  const text: string;
  export default text;
}
