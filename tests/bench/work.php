<?php
// SPDX-License-Identifier: MIT
// Work in equal pieces of some tenths of a millisecond, from when a line comes. A
// byte is written after each.

function work($count)
{
	$total = 0;
	for ($i = 0; $i < $count; $i++)
		$total = ($total + $i * 3) % 1000003;
	return $total;
}

fgets(STDIN);
while (true) {
	work(50000);
	fwrite(STDOUT, ".");
}
