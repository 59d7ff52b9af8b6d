// Keeps 100,000 objects with an array of 50 numbers each, and writes how much of V8's heap is in use.
global.kept = [];
function fill(count) {
  for (let i = 0; i < count; i++) kept.push({ number: i, numbers: new Array(50).fill(i) });
}
fill(100000);
global.gc?.();
console.log(process.memoryUsage().heapUsed);
